"""Keys that changes of one moment on several partitions take and leave, where a tool writes no positions."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from airflow_provider_cdc.core.apply.changes import Changes
from airflow_provider_cdc.core.apply.rows import Places
from airflow_provider_cdc.core.formats.given_positions import moments_and_partitions


def settle(
    winners: Places, groups: Places, where: Places, fills: np.ndarray, changes: Changes, epochs: Places
) -> Places:
    """Return the winners, with another one for each key whose last changes are of one moment on several partitions.

    Their order is unknown to the clock, but not to the images: each change takes the key from the state before it to
    the state after it, so the last state is the one that is reached more often than it is left.

    :param winners: per key the newest event, as the positions have it.
    :param groups: number of each event's key.
    :param where: place of each event's row in ``changes``.
    :param fills: whether the event takes the key; if not, it leaves it.
    :param epochs: epoch of each row: what a newer schema describes came later.
    """
    moments, partitions = (codes[where] for codes in moments_and_partitions(changes.rows.column("position")))
    last: Places = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    last[groups[winners]] = moments[winners]
    together = np.flatnonzero(moments == last[groups])
    lowest = np.full(len(last), np.iinfo(np.int64).max)
    highest = np.full(len(last), -1)
    np.minimum.at(lowest, groups[together], partitions[together])
    np.maximum.at(highest, groups[together], partitions[together])
    contested = np.flatnonzero(lowest < highest)
    if not len(contested):
        return winners
    events: dict[int, list[int]] = {int(key): [] for key in contested}
    before: dict[int, bool] = {}  # whether the key was taken when the moment came
    for event in np.flatnonzero(np.isin(groups, contested)).tolist():
        key = int(groups[event])
        if moments[event] == last[key]:
            events[key].append(event)
        else:
            before[key] = bool(fills[event])
    settled = {int(groups[winner]): int(winner) for winner in winners}
    for key, mine in events.items():
        newest = epochs[where[mine]].max()
        latest = [event for event in mine if epochs[where[event]] == newest]
        settled[key] = _last(latest, where, fills, changes, before.get(key, False))
    chosen: Places = np.sort(np.array(list(settled.values()), dtype=np.int64))
    return chosen


def _last(mine: list[int], where: Places, fills: np.ndarray, changes: Changes, taken: bool) -> int:
    """Return the event that leads to the last state.

    :param taken: whether the key was taken before them all, as far as is known.
    """
    states: list[tuple[str | None, str | None]] = []
    for event in mine:
        images = changes.images["after" if fills[event] else "before"]
        image = _members(images.at(where[[event]])[0].as_py())
        states.append((None, image) if fills[event] else (image, None))
    reached = Counter(state for _, state in states)
    left = Counter(state for state, _ in states)
    final = list((reached - left).elements())
    if not final and not taken:
        final = [None]  # as often left as reached: the key ends as it began, and two-step moves begin without it
    if len(final) != 1:
        return mine[-1]
    return next(event for event, (_, state) in zip(mine[::-1], states[::-1], strict=True) if state == final[0])


def _members(image: str) -> str:
    """Return an image so that equal ones are equal texts: formats build some anew, with other spaces or order."""
    return repr(sorted(json.loads(image, parse_float=str, parse_int=str).items()))
