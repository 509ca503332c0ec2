# SPDX-License-Identifier: Apache-2.0
"""Notice damage in a record, a stored row or an option, but for what no reader can see."""

from __future__ import annotations

from itertools import product

import pytest

from tests.histories.mutants import KINDS, outcomes
from tests.histories.tools import TOOLS
from tests.sample import ALL, TIMES

_FORMATS = list(TOOLS)
# each kind of damage in another format
_SAMPLE = [(kind, _FORMATS[3 * number % len(_FORMATS)]) for number, kind in enumerate(KINDS)]
_SEED = 5


@pytest.mark.parametrize(("kind", "name"), product(KINDS, _FORMATS) if ALL else _SAMPLE)
def test_damage_is_noticed(kind: str, name: str) -> None:
    silent: list[str] = []
    counts = outcomes(name, range(_SEED, _SEED + TIMES), [kind], silent, each=TIMES)
    assert ALL or counts[kind].total(), "nothing was damaged: take another seed"
    assert not counts[kind]["silent"], silent
