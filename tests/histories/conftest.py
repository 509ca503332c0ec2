"""How many histories, and where their lakes lie."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories.generate import THEMES
from tests.histories.log import Log

DEFAULT, CHUNK = 2_000, 50


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--histories``."""
    parser.addoption("--histories", type=int, default=DEFAULT, help=f"random histories to replay (default {DEFAULT})")
    parser.addoption("--first-history", type=int, default=0, help="seed of the first history of each theme")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Spread the histories over the themes, in chunks named by their seeds."""
    if {"theme", "seeds"} <= set(metafunc.fixturenames):
        config = metafunc.config
        count, first = config.getoption("--histories", DEFAULT), config.getoption("--first-history", 0)
        each = -(-count // len(THEMES))
        chunks = [
            (theme, range(i, min(i + CHUNK, first + each)))
            for theme in THEMES
            for i in range(first, first + each, CHUNK)
        ]
        metafunc.parametrize(("theme", "seeds"), chunks, ids=[f"{theme}-{s.start}-{s.stop - 1}" for theme, s in chunks])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The log in memory in place of the broker."""
    log = Log()
    log.install(monkeypatch)
    return log


@pytest.fixture
def lake() -> Iterator[Path]:
    """A folder in memory where the machine has one: thousands of commits wait for no disk."""
    memory = "/dev/shm"
    folder = tempfile.mkdtemp(prefix="histories-", dir=memory if os.access(memory, os.W_OK) else None)
    yield Path(folder) / "lake"
    shutil.rmtree(folder, ignore_errors=True)
