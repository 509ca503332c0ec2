# SPDX-License-Identifier: Apache-2.0
"""A pipeline over the shop's log whose command is watched while it works."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.commands.show import table_documents
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import DATA, PHASES, Answer, Shop
from tests.services import capture
from tests.system import processes

if TYPE_CHECKING:
    from tests.services.broker import Broker

TIMEOUT = 240.0


@dataclass
class Running:
    """A command at work.

    :param mark: every process that comes of it carries this in its environment.
    :param children: command lines of descendants seen while it was watched, by process id.
    """

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    mark: str
    started: float = field(default_factory=time.monotonic)
    children: dict[int, str] = field(default_factory=dict)

    @property
    def going(self) -> bool:
        """Return whether it has not ended yet."""
        return self.process.poll() is None

    def said(self, words: str) -> bool:
        """Return whether a line of progress holds these words."""
        return words in self.err.read_text(errors="replace")

    def watch(self) -> dict[int, str]:
        """Look at the descendants once more and return the present ones."""
        present = {pid: processes.command(pid) for pid in processes.descendants(self.process.pid)}
        self.children.update({pid: line for pid, line in present.items() if line})
        return present

    def until(self, moment: Callable[[Running], bool], timeout: float = TIMEOUT) -> bool:
        """Wait for a moment; return False when the command ended before."""
        deadline = time.monotonic() + timeout
        while True:
            looked = time.monotonic()
            if moment(self):
                return True
            if not self.going:
                return moment(self)
            assert time.monotonic() < deadline, self.err.read_text()[-2000:]
            # looks that take long would take the processor from what they wait for
            time.sleep(max(0.002, 3 * (time.monotonic() - looked)))

    def answer(self, timeout: float = TIMEOUT) -> Answer:
        """Wait for its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout)
        assert not self.going, self.err.read_text()[-2000:]
        wall = time.monotonic() - self.started
        return Answer(self.process.returncode, self.out.read_text(), self.err.read_text(), wall)

    def watched_answer(self) -> Answer:
        """Wait for its end and collect its descendants meanwhile."""
        deadline = time.monotonic() + TIMEOUT
        while self.going and time.monotonic() < deadline:
            self.watch()
            time.sleep(0.005)
        return self.answer(timeout=0)

    def left(self, timeout: float = 30.0) -> list[str]:
        """Return what still runs of it after its end, given some time to go."""
        deadline = time.monotonic() + timeout
        while remaining := processes.marked(self.mark):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        commands = [f"{pid}: {processes.command(pid)}" for pid in remaining]
        for pid in remaining:
            processes.kill(pid)
        return commands


class Site(Shop):
    """A pipeline file, its lake and its ledger in a folder of their own."""

    def launch(self, verb: str = "sync", *arguments: str) -> Running:
        """Start a command, JSON asked for."""
        mark = uuid.uuid4().hex
        out, err = (self.folder / f"{verb}.{mark}.{end}" for end in ("out", "err"))
        line = [sys.executable, "-m", "airflow_provider_cdc.cli", verb, str(self.file()), "--json", *arguments]
        env = {**self.env(), processes.MARK: mark}
        with out.open("wb") as output, err.open("wb") as complained:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=output, stderr=complained, env=env, cwd=self.folder
            )
        return Running(process, out, err, mark)

    def command(self, verb: str, *arguments: str) -> Answer:
        """Run a command to its end, JSON asked for."""
        return self.run(verb, "--json", *arguments)

    def sync(self, *arguments: str) -> Answer:
        """Carry out one batch."""
        return self.command("sync", *arguments)

    def sync_patiently(self, timeout: float = 90.0) -> tuple[Answer, list[Answer]]:
        """Run the same command until its result does not ask to try again; return its answer and those before."""
        deadline = time.monotonic() + timeout
        before: list[Answer] = []
        while (answer := self.sync()).code == 5 and time.monotonic() < deadline:
            before.append(answer)
            self.await_lease(deadline)
        return answer, before

    def await_lease(self, deadline: float) -> None:
        """Wait until no command holds the pipeline: to ask the ledger costs less than commands that are refused.

        :param deadline: time of the monotonic clock at which the wait ends all the same.
        """
        opened = self._opened
        while opened.holder("shop") and time.monotonic() < deadline:
            time.sleep(0.1)

    def batches(self) -> list[dict[str, Any]]:
        """Return the ledger's batches, as the command ``ledger`` prints them but sooner."""
        return [batch.document() for batch in self._opened.batches("shop")]

    def next_seq(self) -> int:
        """Return the number of the batch that the next command works on."""
        last = self._opened.last("shop")
        return 1 if last is None else last.seq + last.committed

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the tables by name, as the command ``tables`` prints them but sooner."""
        return {table["table"]: table for table in table_documents(table_states(self._opened, "shop").values())}

    @property
    def _opened(self) -> Ledger:
        return Ledger(f"sqlite:///{self.ledger}")

    def log(self, seq: int) -> Path:
        """Return the folder of a batch's part of the change log."""
        return self.lake / "_cdc" / "shop" / "log" / f"{seq:08d}"

    def job(self, seq: int) -> Path:
        """Return the folder of a batch's documents."""
        return self.lake / "_cdc" / "shop" / "jobs" / str(seq)

    def location(self, table: str) -> Path:
        """Return where one of the shop's tables lies."""
        return self.lake / "shop" / table


@cache
def _recorded() -> list[capture.Record]:
    return list(capture.read(DATA))


@cache
def _partitions() -> dict[str, int]:
    return capture.partitions_of(DATA)


def records(first: int, last: int, prefix: str = "shopdb") -> Iterator[capture.Record]:
    """Return the records of some phases under topics of another name."""
    start = PHASES[first - 1]["end_offsets"] if first else {}
    end = PHASES[last]["end_offsets"]
    for record in _recorded():
        low = start[record.topic][record.partition] if record.topic in start else 0
        high = end[record.topic][record.partition] if record.topic in end else 0
        if low <= record.offset < high:
            yield replace(record, topic=record.topic.replace("shopdb", prefix))


def feed(broker: Broker, first: int, last: int, prefix: str = "shopdb", *, same_offsets: bool = True) -> None:
    """Bring the records of some phases into the broker."""
    partitions = {name.replace("shopdb", prefix): n for name, n in _partitions().items()}
    capture.replay(broker, records(first, last, prefix), partitions, same_offsets=same_offsets)


def source(prefix: str) -> dict[str, Any]:
    """Return what a pipeline over topics of another name states."""
    return {
        "topics": rf"{prefix}\.shop\..*",
        "schema_topic": prefix,
        "heartbeat_topic": f"__debezium-heartbeat.{prefix}",
    }


def error_of(answer: Answer) -> dict[str, Any]:
    """Return the error that a command answered with."""
    error: dict[str, Any] = json.loads(answer.out)["error"]
    return error


def demand_refused(answer: Answer, code: int, name: str, *words: str) -> None:
    """Demand an error of this name, said to people and to machines, that holds these words."""
    assert answer.code == code, answer.out + answer.err
    assert answer.json["status"] == "failed"
    assert error_of(answer)["code"] == name, answer.err
    assert "Traceback" not in answer.err
    for word in words:
        assert word in str(error_of(answer)), answer.err
