# SPDX-License-Identifier: Apache-2.0
"""Probe sinks of the tests, and show what failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Probe, Result
from airflow_provider_cdc.core.errors import CdcError
from spark_jobs.driver.probe import probe
from tests.sinks.kinds import type_of

Steps = dict[str, str | None]


def here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def job_of(kind: str, root: str, options: dict[str, str]) -> JobDocument:
    """Return the job of a probe."""
    batch = ("shop", 1, "2026-01-01T00:00:00+00:00", root, "debezium-json", {}, None, {}, [], RunPolicy(), TableRules())
    return JobDocument(*batch, [], [], [], sink_type=type_of(kind), sink_options=options, order=Probe())


def problems_of(result: Result) -> Steps:
    """Return what failed in each step, with its hint."""
    errors = {step.name: None if step.error is None else CdcError.from_document(step.error) for step in result.probed}
    return {name: None if error is None else f"{error.headline} -> {error.hint}" for name, error in errors.items()}


def steps_of(kind: str, root: str, options: dict[str, str]) -> Steps:
    """Probe a sink in this process."""
    return problems_of(probe(JobDocument.from_document(job_of(kind, root, options).document()), {}, here))
