# SPDX-License-Identifier: Apache-2.0
"""The log in memory."""

from __future__ import annotations

import pytest

from tests.histories.log import Log


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Return a log in memory in place of the broker."""
    log = Log()
    log.install(monkeypatch)
    return log
