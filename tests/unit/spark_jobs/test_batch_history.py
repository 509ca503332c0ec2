# SPDX-License-Identifier: Apache-2.0
"""Read what earlier batches leave for the next one."""

from __future__ import annotations

from typing import Any

from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.stored_result import StoredResult


def history(**results: dict[str, Any]) -> History:
    """Return batches whose results have these members."""
    seqs = [int(name[1:]) for name in results]
    ended = {"pipeline": "p", "seq": 0, "status": "done"}
    return History(
        seqs, lambda seq: Manifest(seq=seq), lambda seq: StoredResult.from_document({**ended, **results[f"b{seq}"]})
    )


def test_clocks_are_those_that_the_newest_batch_left() -> None:
    assert history().clocks() == []
    assert history(b1={"clocks": [["t", 0, 5, 1]]}, b2={"clocks": [["t", 0, 9, 2]]}).clocks() == [["t", 0, 9, 2]]
