# SPDX-License-Identifier: Apache-2.0
"""Fixtures and the option of this folder."""

from __future__ import annotations

import pytest

from tests.histories.log import Log


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--every-cut``."""
    parser.addoption("--every-cut", action="store_true", help="run each public case through the broker at every cut")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Return the log in memory in place of the broker."""
    log = Log()
    log.install(monkeypatch)
    return log
