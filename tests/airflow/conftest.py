# SPDX-License-Identifier: Apache-2.0
"""Airflow connections without a running Airflow: they stand in the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

Connect = Callable[..., str]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Define a connection; returns its id."""

    def define(conn_id: str, conn_type: str, extra: Mapping[str, Any] | None = None, **fields: Any) -> str:
        document = {"conn_type": conn_type, "extra": dict(extra or {}), **fields}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(document))
        return conn_id

    return define
