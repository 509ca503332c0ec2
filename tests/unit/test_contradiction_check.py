# SPDX-License-Identifier: Apache-2.0
"""``NoContradictions`` fails for what the newest sync counted, in all batches that it became, and for nothing older."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc import NoContradictions
from airflow_provider_cdc.batch.result import empty_result
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.check_result import CheckResult
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.surface.checks import CheckedTables

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


class Shop:
    """A pipeline whose results are written straight into its ledger."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder}/ledger.db"
        source, sink = {"topics": ["t"], "format": "canal-json"}, {"type": "delta", "root": str(folder / "lake")}
        self.pipeline = CdcPipeline.from_dict({"name": "shop", "source": source, "sink": sink, "ledger": url})
        self.ledger, self._end = Ledger(url), 0

    def commit(self, *, cut: bool = False, empty: bool = False, **counts: dict[str, int]) -> None:
        """Commit a batch with contradictions, by table and kind.

        :param cut: whether it is not the last of its request.
        """
        with self.ledger.lease("shop", "a test") as lease:
            start, self._end = self._end, self._end + 10
            batch = self.ledger.plan(
                lease, {"t": {0: start}}, {"t": {0: self._end}}, None, cut_at=TEN if cut else None
            )  # fmt: skip
            tables = [{"database": "shop", "table": t, "contradictions": kinds} for t, kinds in counts.items()]
            first = [
                {"table": f"shop.{t}", "kind": kind, "topic": "t", "partition": 0, "offset": start, "column": "price",
                 "position": "p", "key": "digest"}
                for t, kinds in counts.items() for kind in kinds
            ]  # fmt: skip
            result = {"status": ResultStatus.DONE, "tables": tables, "contradictions": first}
            self.ledger.commit(lease, batch.seq, empty_result("shop", batch.seq) if empty else result)

    def check(self, *tables: str) -> CheckResult:
        states = [TableState(name, "shop", name, f"shop/{name}") for name in tables or ("a", "b")]
        return NoContradictions().run(CheckedTables(self.pipeline, states))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_what_the_newest_sync_counted_is_named_with_its_record(shop: Shop) -> None:
    assert shop.check().passed
    shop.commit()
    assert (shop.check().passed, shop.check().seen) == (True, "none")
    shop.commit(a={"row_differs": 2, "key_there": 1})
    failed = shop.check()
    assert (failed.passed, failed.tables) == (False, ["shop.a"])
    assert failed.seen == (
        "shop.a: 2 row_differs, 1 key_there; the first is row_differs in column price of shop.a at t/0:10"
    )
    assert shop.check("b").passed
    shop.commit()
    assert shop.check().passed


@pytest.mark.parametrize("last", [{}, {"empty": True}])
def test_a_sync_that_became_several_batches_counts_as_one(shop: Shop, last: dict[str, Any]) -> None:
    shop.commit(b={"key_missing": 9})
    shop.commit(cut=True, a={"key_there": 1})
    shop.commit(cut=True, a={"key_there": 2})
    shop.commit(**last)
    failed = shop.check()
    assert failed.tables == ["shop.a"]
    assert failed.seen.startswith("shop.a: 3 key_there; the first is key_there in column price of shop.a at t/0:10")
