# SPDX-License-Identifier: Apache-2.0
"""Decide about schema changes that tables wait for."""

from __future__ import annotations

from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.histories.scripted import Script


def state_of(script: Script, table: str) -> tuple[str, str]:
    (state,) = (s for s in script.states.values() if s.table == table)
    return state.state, state.code


def decide_twice(script: Script, answer: Answer) -> None:
    """Decide, and carry the batch out again, as after a crash before its result: its repeat has no decision to take."""
    states = dict(script.states)
    script.decide("t", answer)
    folder = script.root / "_cdc" / "scripted" / "log" / f"{script.seqs.pop():08d}"
    (folder / "result.json").unlink()
    script.states = states
    script.sync(ends=script.ends)
