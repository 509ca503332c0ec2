# SPDX-License-Identifier: Apache-2.0
"""Send recorded transactions again with another commit before them: each change counts once.

Recorded repeats have the same ``sequence``. The connector takes the commit before a transaction from its stored offset
where it begins with that transaction, and transactions that have no row move no offset.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.captures.in_memory import Ends, checkpoints, records
from tests.captures.postgres_truth import load, verdict
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

FAILOVER = "public-postgres-failover-18"
TABLES = ("app.accounts", "app.orders", "app.visits")


def ends_of(point: int) -> tuple[Path, Ends]:
    return next((truth, ends) for truth, ends in checkpoints(FAILOVER) if truth.name == f"{point}.jsonl.xz")


def transaction_of(record: Record) -> int | None:
    source = None if record.value is None else json.loads(record.value)["payload"].get("source")
    return None if source is None else source["txId"]


def moved(record: Record, by: int) -> Record:
    """Return a record of the transaction with the commit before it elsewhere."""
    message = json.loads(record.value or b"{}")
    committed, own = json.loads(message["payload"]["source"]["sequence"])
    message["payload"]["source"]["sequence"] = json.dumps([str(int(committed) + by), own])
    return replace(record, value=json.dumps(message, separators=(",", ":")).encode())


CASES = [
    *((0, xid, together) for xid in (783, 784, 786) for together in (True, False)),
    *((-1, xid, together) for xid in (783, 784) for together in (True, False)),
    (-1, 786, True),  # in a later batch it counts twice (docs/formats/debezium-postgres.md, "What the tool loses")
]


@pytest.mark.parametrize(("first", "xid", "together"), CASES)
def test_a_transaction_that_is_sent_again_counts_once(
    first: int, xid: int, together: bool, log: Log, tmp_path: Path
) -> None:
    """Send a delete (783), an insert (784), an insert into a table without key (786), and what follows, again.

    The first (-1) or the second (0) copy has the commit before it one byte before where the other one has it.
    """
    truth, ends = ends_of(1)
    again: list[Record] = []
    for record in records(FAILOVER):
        if record.offset >= ends.get((record.topic, record.partition), 0) or "app" not in record.topic:
            continue
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        one = Record(record.topic, record.partition, record.timestamp, record.key, record.value)
        number = transaction_of(one)
        mine = number == xid
        partition.append(moved(one, first) if mine and first else one)
        if number is not None and number >= xid:
            again.append(moved(one, -1) if mine and not first else one)
    script = Script(log, tmp_path, schema_topic=None, options={"connector": "postgresql"})
    if not together:
        script.sync()
    script.send(*again)
    script.sync()
    assert {t.name: verdict(script, t) for t in load(truth) if t.name in TABLES} == dict.fromkeys(TABLES, "equal")
