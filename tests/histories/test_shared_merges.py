# SPDX-License-Identifier: Apache-2.0
"""Random histories into Iceberg tables each of whose merges is divided among tasks; attempts die at any moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import JobDocument, Result
from spark_jobs.driver.run_batch import sync
from tests.histories.cases import case_of, judge
from tests.histories.log import Log
from tests.sample import ALL

COUNT = 20 if ALL else 3


def test_every_table_equals_the_model_where_tasks_share_the_merges(
    log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = Counter[str]()

    def counted(job: JobDocument, *arguments: Any) -> Result:
        result = sync(job, *arguments)
        reasons.update(f"{line.action} {line.writer}" for line in result.tables if line.status == "committed")
        return result

    monkeypatch.setattr("tests.histories.run.sync", counted)
    monkeypatch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, bucket_rows=20, spark_writer_bytes=1))
    for seed in range(COUNT):
        kind = ("iceberg", "iceberg copy-on-write")[seed % 2]
        case = replace(case_of("debezium-json", 1_200_000 + seed, sizes=(5, 8)), sink=kind, batches=4)
        verdict = judge(case, log, lake / str(seed))
        if verdict.failure:
            pytest.fail(f"{seed}, made smaller:\n{verdict.failure}", pytrace=False)
    assert reasons["merge spark"] and reasons["create task"], reasons
    assert not {name for name in reasons if name.endswith("spark")} - {"merge spark"}
