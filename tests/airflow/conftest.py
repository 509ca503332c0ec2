# SPDX-License-Identifier: Apache-2.0
"""Airflow connections without a running Airflow: they stand in the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.services import forked

from .shop import Shop

if TYPE_CHECKING:
    from tests.services.broker import Broker

Connect = Callable[..., str]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Define a connection; returns its id."""

    def define(conn_id: str, conn_type: str, extra: Mapping[str, Any] | None = None, **fields: Any) -> str:
        document = {"conn_type": conn_type, "extra": dict(extra or {}), **fields}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(document))
        return conn_id

    return define


@pytest.fixture
def forked_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let inline engines of this process be forks of one that has imported everything."""
    monkeypatch.setattr("airflow_provider_cdc.engine.inline.start", forked.run_engine)


@pytest.fixture
def shop(filled: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_engine: None) -> Shop:
    made = Shop(tmp_path, {"bootstrap.servers": filled.bootstrap})
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", made.env()["AIRFLOW_CONN_SHOP_KAFKA"])
    return made
