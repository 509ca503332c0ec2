# SPDX-License-Identifier: Apache-2.0
"""Options: how many mutated frames and kills; ``pytest tests/canal --canal-frames 100000 --canal-kills 200``."""

from __future__ import annotations

import pytest

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
