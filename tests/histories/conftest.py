# SPDX-License-Identifier: Apache-2.0
"""Set how many histories run, and where their lakes lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories.log import Log
from tests.histories.place import lake_folder
from tests.histories.tools import TOOLS
from tests.sample import amount

DEFAULT, CHUNK, FIRST = amount(56, 112), 8, 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--histories``."""
    parser.addoption("--histories", type=int, default=DEFAULT, help=f"random histories to replay (default {DEFAULT})")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Spread the histories over the formats, in chunks named by their seeds."""
    if {"name", "seeds"} <= set(metafunc.fixturenames):
        each = -(-metafunc.config.getoption("--histories", DEFAULT) // len(TOOLS))
        starts = range(FIRST, FIRST + each, CHUNK)
        chunks = [(name, range(i, min(i + CHUNK, FIRST + each))) for name in TOOLS for i in starts]
        metafunc.parametrize(("name", "seeds"), chunks, ids=[f"{name}-{s.start}-{s.stop - 1}" for name, s in chunks])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Return the log in memory in place of the broker."""
    log = Log()
    log.install(monkeypatch)
    return log


@pytest.fixture
def lake() -> Iterator[Path]:
    """Return a folder for the lake."""
    with lake_folder() as folder:
        yield folder
