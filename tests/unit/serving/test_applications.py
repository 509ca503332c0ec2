# SPDX-License-Identifier: Apache-2.0
"""Hand applications to batches and end them; processes that only wait stand for Spark."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.engine.kept_spark import GATEWAY_FILE, Application, Start, Wish
from airflow_provider_cdc.serving.applications import Applications

# as Spark's JVM: it writes how it is reached, then waits for the end of its input
WAITS = """
import os, struct, sys
folder, secret = sys.argv[1], b"abc"
with open(folder + "/part", "wb") as file:
    file.write(struct.pack(">ii", 4711, len(secret)) + secret)
print("a line", flush=True)
os.rename(folder + "/part", folder + "/FILE")
sys.stdin.read()
""".replace("FILE", GATEWAY_FILE)


class Batch:
    """A batch's end and the server's."""

    def __init__(self, applications: Applications) -> None:
        self.applications = applications
        self.server: Connection
        self.mine: Connection
        self.server, self.mine = Pipe()

    def wish(self, key: str, keep_seconds: int = 60) -> Any:
        self.applications.wish(self.server, Wish(key, keep_seconds))
        return self.mine.recv()

    def start(self, folder: Path, program: str = WAITS) -> Any:
        self.applications.start(self.server, Start([sys.executable, "-c", program, str(folder)], dict(os.environ)))
        deadline = time.monotonic() + 30
        while not self.mine.poll(0.01):
            assert time.monotonic() < deadline
            self.applications.look(time.monotonic())
        return self.mine.recv()

    def end(self, *, well: bool = True) -> None:
        self.applications.give_back(self.server, well=well)


@pytest.fixture
def applications() -> Iterator[Applications]:
    created = Applications()
    yield created
    created.end()


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_next_batch_with_these_settings_gets_the_same_application(applications: Applications) -> None:
    one, two, three = (Batch(applications) for _ in range(3))
    folder = one.wish("a")
    assert folder.stat().st_mode & 0o777 == 0o700
    started = one.start(folder)
    assert (started.port, started.secret, started.lines()) == (4711, "abc", ["a line"])
    assert one.wish("a") == started, "a large request has several batches for Spark"
    assert isinstance(two.wish("a"), Path), "another batch has it"
    two.end(well=False)
    one.end()
    assert isinstance(two.wish("b"), Path), "it has other settings"
    assert three.wish("a") == started
    assert started.lines() == [], "those before were of another batch"


def test_it_ends_after_a_while_without_work(applications: Applications) -> None:
    one = Batch(applications)
    folder = one.wish("a", 60)
    started = one.start(folder)
    applications.look(time.monotonic() + 600)
    assert runs(started.pid), "a batch works in it"
    one.end()
    applications.look(time.monotonic() + 59)
    assert runs(started.pid)
    applications.look(time.monotonic() + 61)
    assert not runs(started.pid)
    assert not folder.exists()


def test_it_ends_after_many_batches(applications: Applications) -> None:
    one = Batch(applications)
    started = one.start(one.wish("a"))
    for _ in range(249):
        one.end()
        assert one.wish("a") == started
    one.end()
    assert not runs(started.pid)


def test_it_ends_with_a_batch_that_did_not_end_well(applications: Applications) -> None:
    one, two = Batch(applications), Batch(applications)
    started = one.start(one.wish("a"))
    one.end(well=False)
    assert not runs(started.pid)
    assert isinstance(two.wish("a"), Path)


def test_one_that_was_killed_is_not_handed_out(applications: Applications) -> None:
    one, two = Batch(applications), Batch(applications)
    started = one.start(one.wish("a"))
    one.end()
    os.kill(started.pid, signal.SIGKILL)
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    again = two.start(two.wish("a"))
    assert isinstance(again, Application)
    assert again.pid != started.pid


def test_one_that_does_not_start_says_why(applications: Applications) -> None:
    one, two = Batch(applications), Batch(applications)
    assert one.start(one.wish("a"), "raise SystemExit('no memory')") == "no memory\n"
    one.end(well=False)
    applications.wish(two.server, Wish("a", 60))
    applications.start(two.server, Start(["/nowhere/spark-submit"], {}))
    two.mine.recv()
    assert "/nowhere/spark-submit" in two.mine.recv()


def test_a_batch_whose_application_was_killed_is_handed_another(applications: Applications) -> None:
    """One request may be several batches for Spark."""
    one = Batch(applications)
    started = one.start(one.wish("a"))
    os.kill(started.pid, signal.SIGKILL)
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    again = one.start(one.wish("a"))
    assert runs(again.pid)
    assert again.pid != started.pid


def test_of_a_batch_that_is_gone_nothing_stays(
    applications: Applications, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one, two = Batch(applications), Batch(applications)
    one.mine.close()
    applications.wish(one.server, Wish("a", 60))
    (folder,) = tmp_path.iterdir()
    one.end(well=False)
    assert not folder.exists()
    assert runs(two.start(two.wish("a")).pid), "the others go on"
