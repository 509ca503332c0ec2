# SPDX-License-Identifier: Apache-2.0
"""Run one batch: an engine reads a job document and writes a result document."""

from __future__ import annotations

from airflow_provider_cdc.engine.task import EngineTask, Stopper, read_result

__all__ = ["EngineTask", "Stopper", "read_result"]
