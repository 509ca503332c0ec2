# SPDX-License-Identifier: Apache-2.0
"""Make jobs for a course, as the command line does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import JobDocument
from tests.captures.replaying import Lake
from tests.system.course import Course

SECRETS: dict[str, dict[str, str]] = {}


def inline(function: Any, items: Any) -> list[Any]:
    return [function(item) for item in items]


def job_of(course: Course, **fields: Any) -> JobDocument:
    """Return a job of the pipeline that reads no records."""
    return replace(next_job(course.lake), **fields)


def next_job(lake: Lake) -> JobDocument:
    """Return the job of a lake's next batch, which reads no records."""
    jobs: list[JobDocument] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.captures.replaying.sync", lambda job, *rest: jobs.append(job) or _stop())
        with pytest.raises(StopIteration):
            lake.sync_to({})
    lake.seq -= 1
    return jobs[0]


def _stop() -> None:
    raise StopIteration
