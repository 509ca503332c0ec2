"""Engines: what carries out one batch, told in a job document and answering in a result document."""

from __future__ import annotations

from airflow_provider_cdc.engine.task import EngineTask, Stopper, read_result

__all__ = ["EngineTask", "Stopper", "read_result"]
