# SPDX-License-Identifier: Apache-2.0
"""A changed configuration is applied by the next run, also where the log has nothing new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.unsettled import Unsettled
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.ledger import Ledger


def pipeline(root: Path, **more: object) -> CdcPipeline:
    source = {"topics": "t", "format": "debezium-json"}
    return CdcPipeline.from_dict({"name": "shop", "source": source, "sink": {"root": str(root)}, **more})


@pytest.mark.parametrize(
    ("changed", "applies"),
    [
        ({}, False),
        ({"policy": {"engine": "inline"}}, False),
        ({"policy": {"zero_dates": "text"}}, True),
        ({"policy": {"on_truncate": "ignore"}}, True),
        ({"policy": {"quarantine_limit": 5}}, True),
        ({"tables": {"exclude": ["shop.t"]}}, True),
        ({"tables": {"shop.t*": {"tinyint1_as_boolean": True}}}, True),
    ],
)
def test_what_decides_content_is_applied_without_new_records(
    tmp_path: Path, changed: dict[str, object], applies: bool
) -> None:
    before, after = pipeline(tmp_path), pipeline(tmp_path, **changed)
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    state = TableState("1", "shop", "t", "shop/t", 1)
    with ledger.lease("shop", "ann", 30) as lease:
        assert Unsettled(after, ledger, lease).why_continue() == ""
        batch = ledger.plan(lease, {}, {}, None)
        ledger.commit(lease, batch.seq, {}, {"1": state.document()}, fingerprint=before.fingerprint())
        assert bool(Unsettled(after, ledger, lease).why_continue()) is applies
        batch = ledger.plan(lease, {}, {}, None)
        ledger.commit(
            lease, batch.seq, {}, {"1": replace(state, applied_seq=2).document()}, fingerprint=after.fingerprint()
        )
        assert Unsettled(after, ledger, lease).why_continue() == ""
