# SPDX-License-Identifier: Apache-2.0
"""Rows and statements of a server's log, and of the next one, whose files are numbered from the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_jobs.driver.approval import NewGenerationError
from tests.histories.debezium_records import TOPIC, ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

SERVER = "861d4b0d-e67c-11f1-beee-02fc00000001"
BEGIN = f"{TOPIC}.shop.t/0:3"  # of the new log


def at(file: int, number: int, key: int, value: str, *, partition: int = 0, table: str = "t") -> Record:
    """Return an insert or update of a row: transaction ``number`` of the server, a second later than the one before."""
    return row(
        "u", table, 100 * number, {"id": key, "v": value}, key=("id",), time=1_000 * number, partition=partition,
        file=f"mysql-bin.{file:06d}", gtid=f"{SERVER}:{number}",
    )  # fmt: skip


def create(table: str = "t", **more: Any) -> Record:
    columns = {"id": "int", "v": "varchar"}
    text = f"CREATE TABLE shop.{table} (id int NOT NULL, v varchar(20), PRIMARY KEY (id))"
    return ddl(text, 4, time=500, table=table, columns=columns, key=("id",), **more)


def pipeline(log: Log, lake: Path, **policy: Any) -> Script:
    """Return a pipeline whose rows come as updates, also those that are not there."""
    return Script(log, lake, schema_topic=TOPIC, policy={"on_contradiction": "count", **policy})


def question(script: Script, approved: str = "") -> str:
    """Sync and return the record that is to be approved."""
    with pytest.raises(NewGenerationError) as caught:
        script.sync(new_generation=approved)
    return caught.value.begins[0].name
