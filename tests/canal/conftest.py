# SPDX-License-Identifier: Apache-2.0
"""A server with a recorded session, and the options ``--canal-frames 100000 --canal-kills 200``."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.canal.recorded_session import entries, session_of
from tests.canal.server import Canal, serving

FRAMES, KILLS = 1_000, 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the numbers."""
    parser.addoption("--canal-frames", type=int, default=FRAMES, help=f"mutated frames (default {FRAMES})")
    parser.addoption("--canal-kills", type=int, default=KILLS, help=f"killed clients (default {KILLS})")


@pytest.fixture
def frames(request: pytest.FixtureRequest) -> int:
    """Return how many mutated frames a test sends."""
    return int(request.config.getoption("--canal-frames", FRAMES))


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """Return how many clients a test kills."""
    return int(request.config.getoption("--canal-kills", KILLS))


@pytest.fixture
def canal() -> Canal:
    return session_of(entries())


@pytest.fixture
def port(canal: Canal, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with serving(canal) as served:
        for name, password in (("CANAL_DEFAULT", "canal"), ("CANAL_WRONG", "hidden")):
            conn = {"conn_type": "canal", "host": "127.0.0.1", "port": served, "login": "canal", "password": password}
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(conn))
        yield served
