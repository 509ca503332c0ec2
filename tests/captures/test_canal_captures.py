# SPDX-License-Identifier: Apache-2.0
"""Each real Canal capture, replayed through the broker, gives the database's own content, but for what Canal loses."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.captures.canal_capture import (
    DATA,
    load,
    problems,
    records,
)
from tests.captures.replaying import Lake, full_ends, random_cuts
from tests.services.broker import Broker
from tests.services.capture import Record, replay

FORMATS = {
    "canal-my8-f": "canal-json",
    "canal-mdb-f": "canal-json",
    "canal-my8-b": "canal-protobuf",
    "canal-mdb-b": "canal-protobuf",
}
# one topic with one partition; one topic hashed by key over three; a topic for each table, hashed in the same way
LAYOUTS = ("1", "h", "d")

# ---- what Canal loses (docs/wire/canal.md 4.4, 10), each with its cause


def topics_of(name: str, layout: str) -> set[str]:
    letter = name[-1]
    every = {record.topic for record in records(name)}
    named = {f"{letter}{one}" for one in LAYOUTS}
    return {f"{letter}{layout}"} if layout != "d" else {f"{letter}d"} | (every - named)


@cache
def replayed(name: str, layout: str, broker: Broker) -> list[Record]:
    """Put one layout's topics into the broker, once, under names of their own."""
    topics = topics_of(name, layout)
    prefix = f"{name}.{layout}."
    mine = [replace(record, topic=prefix + record.topic) for record in records(name) if record.topic in topics]
    counts = dict.fromkeys({record.topic for record in mine}, 1 if layout == "1" else 3)
    replay(broker, mine, counts)
    return mine


@pytest.mark.sampled
@pytest.mark.parametrize(("layout", "batches"), [("1", 4), ("h", 1), ("d", 4)])
@pytest.mark.parametrize("name", list(FORMATS))
def test_canal_capture_gives_the_final_content(
    name: str, layout: str, batches: int, broker: Broker, tmp_path: Path
) -> None:
    mine = replayed(name, f"{layout}", broker)
    lake = Lake(tmp_path, broker.bootstrap, None, FORMATS[name], quarantine_limit=100)
    for ends in random_cuts(full_ends(mine), batches, seed=batches):
        lake.sync_to(ends)
    wrong = [
        text for source in load(DATA / name / "source_final.jsonl.xz") for text in problems(name, layout, lake, source)
    ]
    assert not wrong, "\n".join(w[:200] for w in wrong)
