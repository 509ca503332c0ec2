# SPDX-License-Identifier: Apache-2.0
"""Recorded captures served by a byte server give the source's tables, however often the client is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import Messages, Packet
from tests.canal import collecting
from tests.canal.server import Canal, serving
from tests.captures.canal_capture import DATA, load, problems, records
from tests.captures.replaying import Lake

PARTITION = (collecting.DESTINATION, 0)


def served(name: str, chance: random.Random) -> Canal:
    """Return a server with the packets of a capture's topic of one partition, some of them joined."""
    values = [record.value for record in records(name) if record.topic == f"{name[-1]}1"]
    messages = [list(Messages.FromString(Packet.FromString(value or b"").body).messages) for value in values]
    assert len(messages) > 100
    return Canal(messages, together=partial(chance.choice, [1, 1, 2, 3]))


def lake_of(root: Path) -> Lake:
    return Lake(root, "", None, "canal-protobuf", quarantine_limit=100, reader="segments")


def wrong_tables(name: str, lake: Lake) -> list[str]:
    sources = load(DATA / name / "source_final.jsonl.xz")
    return [text for source in sources for text in problems(name, "1", lake, source)]


@pytest.mark.parametrize("name", ["canal-my8-b", "canal-mdb-b"])
def test_a_capture_over_canals_own_protocol_gives_the_final_content(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_cdc.sources.canal_drain.HELD_BYTES", 200_000)
    chance, lake = random.Random(name), lake_of(tmp_path)
    canal = served(name, chance)
    messages, canal.messages = canal.messages, []
    with serving(canal) as port:
        for share in (0.6, 1):
            canal.messages = messages[: round(len(messages) * share)]
            collecting.collect(port, tmp_path)
            assert canal.done == len(canal.messages)
            lake.sync_to({PARTITION: collecting.segments(tmp_path).end()})
            canal.restart(back=chance.randrange(20))
    wrong = wrong_tables(name, lake)
    assert not wrong, "\n".join(text[:200] for text in wrong)


def test_clients_killed_at_any_moment_lose_and_double_nothing(kills: int, tmp_path: Path) -> None:
    name, chance = "canal-my8-b", random.Random(kills)
    canal, lake = served(name, chance), lake_of(tmp_path)
    killed, moments = 0, {"get": 0, "answered": 0, "ack": 0}
    # the client that runs, and at which event of the server, and how long after that, it is killed
    client: list[subprocess.Popen[bytes]] = []
    event, left, pause = ["get"], [0], [0.0]
    lock = threading.Lock()

    def moment(what: str, number: int) -> None:
        with lock:
            left[0] -= what == event[0]
            if left[0] == 0 and what == event[0]:
                time.sleep(pause[0])
                moments[what] += 1
                with suppress(ProcessLookupError):
                    os.kill(client[-1].pid, signal.SIGKILL)

    canal.moment = moment
    with serving(canal) as port:
        command = [sys.executable, "-m", "tests.canal.collecting", str(port), str(tmp_path)]
        while killed < kills or not all(moments.values()):
            if canal.done == len(canal.messages):
                canal.restart(back=chance.randrange(len(canal.messages)))
            with lock:
                event[0] = min(moments, key=lambda kind: moments[kind])
                left[0], pause[0] = chance.randrange(1, 5), chance.choice([0, 0, 0.0003, 0.001, 0.003, 0.01])
            client.append(subprocess.Popen(command, stderr=subprocess.PIPE))
            _, errors = client[-1].communicate(timeout=60)
            assert client[-1].returncode in (0, -signal.SIGKILL), errors.decode()
            killed += client[-1].returncode != 0
            if chance.random() < 0.1:
                canal.restart(back=chance.randrange(30))
        left[0] = 0  # no later event is at the count of 1
        collecting.collect(port, tmp_path)
    assert canal.done == len(canal.messages)
    lake.sync_to({PARTITION: collecting.segments(tmp_path).end()})
    wrong = wrong_tables(name, lake)
    assert not wrong, "\n".join(text[:200] for text in wrong)
