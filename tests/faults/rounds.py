# SPDX-License-Identifier: Apache-2.0
"""One round: a random history through a real broker and the command line, with a fault in each of its batches."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import yaml
from confluent_kafka import Producer

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import NEW_GENERATION
from airflow_provider_cdc.ledger import Ledger
from spark_jobs.lake.storage import table_location
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.faults.store import FAULTS, FailingStore, Weather
from tests.histories.cases import case_of
from tests.histories.frames import registry_of
from tests.histories.log import Log
from tests.histories.neutral import creates
from tests.histories.run import Replay
from tests.histories.source import Name
from tests.histories.tools import PREFIX, TOOLS
from tests.services import forked
from tests.services.broker import OwnBroker
from tests.services.postgres import Postgres
from tests.services.s3 import S3
from tests.system import processes

if TYPE_CHECKING:
    from tests.histories.records import Record

ROOT = Path(__file__).parents[2]
LEASE_SECONDS = 3
AGAIN, DATA = 5, 3
_APPROVALS = 8  # of new logs of the source, at most, for one batch
_UNCLEAR = "source.generation_unclear"  # the log does not show which of two logs a record is of: only a user can say
# a registry in this process dies with it: the hosts of a round are others
FORMATS = [name for name, tool in TOOLS.items() if not tool.by_clock and not registry_of(name)]


class Services:
    """The broker, store and database of all rounds; each starts when a round needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stack = folder, ExitStack()

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def broker(self) -> OwnBroker:
        """A Kafka broker."""
        return self._stack.enter_context(OwnBroker())

    @cached_property
    def postgres(self) -> Postgres:
        """A PostgreSQL server."""
        return self._stack.enter_context(Postgres())

    @cached_property
    def s3(self) -> S3:
        """An S3 service with the bucket ``lake``."""
        service = self._stack.enter_context(S3())
        service.create_bucket("lake")
        return service

    @cached_property
    def store(self) -> FailingStore:
        """Return what stands between a pipeline and the S3 service."""
        store = FailingStore(self.s3.endpoint)
        self._stack.callback(store.stop)
        return store


@dataclass
class Ending:
    """Report how a command ended.

    :param error: error document, None without one.
    """

    code: int
    error: dict[str, Any] | None
    text: str

    @property
    def fault(self) -> str | None:
        """Return what is wrong with this ending, None where it reports what happened, where, and what to do."""
        if "Traceback" in self.text:
            return f"a traceback: {self.text[-1500:]}"
        if self.code not in (0, DATA, AGAIN, -signal.SIGKILL):
            return f"exit code {self.code}: {self.text[-600:]}"
        if self.code == AGAIN and (self.error is None or not self.error["code"] or not self.error["hint"]):
            return f"no code or no hint: {self.error or self.text[:2_000]}"
        return None


@dataclass
class Round:
    """A pipeline of its own over topics of its own.

    :param kind: name of the fault.
    :param batches: how many there are, with a fault in each.
    :param problems: what is wrong at the end, empty when every table equals the model.
    :param endings: exit codes and error codes that commands ended with.
    """

    number: int
    kind: str
    services: Services
    folder: Path
    batches: int = 3
    problems: list[str] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rnd = random.Random(f"fault {self.number}")
        case = case_of(FORMATS[self.number % len(FORMATS)], self.number)
        self.replay = Replay(case, Log(), self.folder / "lake")
        self._tool = TOOLS[case.format]
        partitions = self.replay.log.partitions
        if all(topic == self._tool.schema_topic or topic.startswith("__") for topic, _ in partitions):
            partitions[f"{PREFIX}rows", 0] = []  # a history without rows: a pipeline has to name a topic of rows
        self._prefix = f"r{self.number}x{os.getpid()}"
        self._root = str(self.folder / "lake")
        self._environment: dict[str, str] = {}
        self._postgres = self.kind == "postgres"
        self.on_s3 = self.kind in FAULTS
        if self.on_s3:
            self._root = f"s3://lake/{self._prefix}"
            self.replay.root = self._root  # type: ignore[assignment]
        (self.folder / "home").mkdir(parents=True)

    # ---- the pipeline

    @property
    def ledger_url(self) -> str:
        """Return where this round's first host keeps its ledger."""
        if self._postgres:
            return self.services.postgres.url.replace("+psycopg", "")
        return f"sqlite:///{self.folder / 'home' / 'ledger.db'}"

    def pipeline(self, home: str = "home") -> Path:
        """Write the pipeline's file as a host sees it; each home has a ledger of its own."""
        case, tool = self.replay.case, self._tool
        topics = sorted({self._topic(topic) for topic, _ in self.replay.log.partitions})
        schema = self._topic(tool.schema_topic) if tool.schema_topic else None
        document: dict[str, Any] = {
            "name": self._prefix,
            "source": {
                "connection": "fault_kafka",
                "topics": [topic for topic in topics if topic != schema and not topic.startswith("__")],
                "format": case.format,
                "options": dict(tool.options),
            },
            "sink": {"type": "delta", "root": self._root},
            "policy": {
                "engine": "inline",
                "lease_seconds": LEASE_SECONDS,
                "land_deadline_seconds": 20,
                "on_drop_table": case.on_drop,
            },
            "ledger": self.ledger_url if home == "home" else f"sqlite:///{self.folder / home / 'ledger.db'}",
        }
        if self._postgres:
            document["ledger"] = "fault_ledger"
        if schema:
            document["source"]["schema_topic"] = schema
        if self.on_s3:
            document["sink"]["storage_connection"] = "fault_store"
            document["sink"]["storage_options"] = {"aws_conditional_put": "etag"}
        if tool.states_creates:
            document["tables"] = creates(case.statements)
        path = self.folder / home / "pipeline.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(document))
        return path

    def start(self, home: str = "home") -> subprocess.Popen[str]:
        """Start one batch."""
        path = self.pipeline(home)
        return subprocess.Popen(
            [sys.executable, "-m", "airflow_provider_cdc.cli", "sync", str(path), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._variables(path),
            cwd=path.parent,
        )

    def _variables(self, path: Path) -> dict[str, str]:
        """Return the environment of a command on a pipeline's file."""
        kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": self.services.broker.bootstrap}}
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "AIRFLOW_HOME": str(path.parent),
            "AIRFLOW_CONN_FAULT_KAFKA": json.dumps(kafka),
        }
        if self.on_s3:
            extra = {"endpoint_url": self.services.store.endpoint, "region_name": S3.region}
            store = {"conn_type": "aws", "login": S3.access_key, "password": S3.secret_key, "extra": extra}
            env["AIRFLOW_CONN_FAULT_STORE"] = json.dumps(store)
        if self._postgres:
            env["AIRFLOW_CONN_FAULT_LEDGER"] = self.services.postgres.conninfo
        return env

    def ended(self, process: subprocess.Popen[str]) -> Ending:
        """Wait for a command's end and judge it."""
        out, err = process.communicate(timeout=300)
        return self._judged(process.returncode, out, err)

    def _judged(self, code: int, out: str, err: str) -> Ending:
        try:
            result = json.loads(out)
        except ValueError:
            result = {}
        shown = out if len(out) < 1_000 else f"{out[:700]} … {out[-300:]}"
        ending = Ending(code, result.get("error"), shown + err)
        self.endings[f"{code} {ending.error['code'] if ending.error else '-'}"] += 1
        if ending.fault is not None:
            self.problems.append(ending.fault)
        return ending

    def sync(self, home: str = "home") -> Ending:
        """Carry out one batch; approve each new log of the source that it asks for, as its hint says."""
        ending = self._run(home, "sync")
        for _ in range(_APPROVALS if self.replay.case.style.log_restarts else 0):
            if ending.error is None or ending.error["code"] != NEW_GENERATION:
                break
            ending = self._run(home, "approve", "--new-generation")
        return ending

    def _run(self, home: str, verb: str, *options: str) -> Ending:
        """Run a command that nothing happens to, in a fork."""
        path = self.pipeline(home)
        return self._judged(*forked.run([verb, str(path), *options, "--json"], self._variables(path), path.parent))

    def heal(self, home: str = "home") -> None:
        """Run the same command until it is done, as Airflow's retries do once the fault is over."""
        for _ in range(12):
            if self.sync(home).code != AGAIN:
                return
            time.sleep(1.0)
        self.problems.append("the batch did not end after the fault was over")

    # ---- the log

    def _topic(self, topic: str) -> str:
        # the topics of one table each do not begin with the histories' prefix
        return topic.replace(PREFIX, self._prefix, 1) if PREFIX in topic else f"{self._prefix}.{topic}"

    def slices(self) -> Iterator[list[Record]]:
        """Yield the records of each batch in the order of sending."""
        everything = [item.record for item in self.replay._sent]
        ends = [len(everything) * n // self.batches for n in range(self.batches + 1)]
        for start, end in pairwise(ends):
            yield everything[start:end]

    def produce(self, records: list[Record]) -> None:
        """Write records into this round's topics."""
        producer = Producer({"bootstrap.servers": self.services.broker.bootstrap, "linger.ms": 5})
        for record in records:
            producer.produce(
                self._topic(record.topic),
                key=record.key,
                value=record.value,
                partition=record.partition,
                headers=list(record.headers) or None,
            )
        assert producer.flush(60) == 0

    # ---- the course

    def run(self) -> None:
        """Carry the round out."""
        partitions: dict[str, int] = {}
        for topic, partition in self.replay.log.partitions:
            partitions[self._topic(topic)] = max(partitions.get(self._topic(topic), 0), partition + 1)
        self.services.broker.create_topics(partitions)
        fault = KINDS[self.kind]
        try:
            for records in self.slices():
                self.produce(records)
                fault(self)
            self.heal()
            self.problems += self._unequal()
        finally:
            if Path(self._root).is_mount():
                subprocess.run(["umount", "--lazy", self._root], check=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _unequal(self) -> list[str]:
        replay = self.replay
        documents = Ledger(self.ledger_url).tables(self._prefix)
        replay.states = {table_id: TableState.from_document(document) for table_id, document in documents.items()}
        picture = replay._sent[-1].picture if replay._sent else None
        if picture is None or any(_UNCLEAR in ending for ending in self.endings):
            return []
        replay._rows = self._rows  # type: ignore[method-assign]
        return replay._differences(picture)

    def _rows(self, name: Name) -> pa.Table | None:
        options = {**self.services.s3.storage_options} if self.on_s3 else {}
        location = DeltaLocation(table_location(self._root, *name), options)
        return location.rows() if location.exists else None


# ---- faults


def _store(fault: Any) -> Callable[[Round], None]:
    def strike(round_: Round) -> None:
        store = round_.services.store
        for share in (0.2, 0.05):
            store.weather = Weather(fault, share, random.Random(round_.number))
            code = round_.sync().code
            store.weather = Weather()
            if code == DATA:
                round_.problems.append(f"a passing fault of the store ({fault}) parked a table")
            if code != AGAIN:
                return
        round_.heal()

    return strike


def _killed(target: str) -> Callable[[Round], None]:
    def strike(round_: Round) -> None:
        for _ in range(2):
            process = round_.start()
            time.sleep(round_.rnd.uniform(0.3, 3.0))
            pids = [process.pid] if target == "command" else processes.descendants(process.pid)
            for pid in pids:
                processes.kill(pid)
            round_.ended(process)
        round_.heal()

    return strike


def _stopped(round_: Round) -> None:
    """Stop the command beyond its lease, let another take over, and wake the first one."""
    process = round_.start()
    time.sleep(round_.rnd.uniform(0.3, 3.0))
    pids = processes.stop(process.pid, round_.folder / "home" / "ledger.db")
    time.sleep(LEASE_SECONDS + 1)
    round_.heal()
    for pid in pids:
        processes.kill(pid, signal.SIGCONT)
    round_.ended(process)


def _second_host(round_: Round) -> None:
    """Let another host with a ledger of its own work on the same lake at the same time."""
    first, second = round_.start(), round_.start("other")
    for process in (first, second):
        round_.ended(process)
    round_.heal(round_.rnd.choice(("home", "other")))


def _lost_ledger(round_: Round) -> None:
    round_.heal()
    if round_.rnd.random() < 0.7:
        (round_.folder / "home" / "ledger.db").unlink(missing_ok=True)


def _broker(round_: Round) -> None:
    """Freeze the broker while a batch is planned or read."""
    process = round_.start()
    time.sleep(round_.rnd.uniform(0.2, 2.0))
    round_.services.broker.pause()
    try:
        time.sleep(round_.rnd.uniform(1.0, 6.0))
    finally:
        round_.services.broker.resume()
    round_.ended(process)
    round_.heal()


def _postgres(round_: Round) -> None:
    process = round_.start()
    time.sleep(round_.rnd.uniform(0.3, 2.5))
    round_.services.postgres.restart()
    round_.ended(process)
    round_.heal()


def _disk_full(round_: Round) -> None:
    with _small_disk(Path(round_._root), kilobytes=round_.rnd.choice((64, 200, 500))):
        if round_.sync().code == DATA:
            round_.problems.append("a full disk parked a table")
    round_.heal()


@contextmanager
def _small_disk(root: Path, kilobytes: int) -> Iterator[None]:
    """Leave so many free kilobytes on the lake's file system, a tmpfs of its own."""
    root.mkdir(exist_ok=True)
    if not root.is_mount():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(root)], check=True)
    free = shutil.disk_usage(root).free
    filler = root / ".filler"
    try:
        with filler.open("wb") as file:
            file.write(b"\0" * max(0, free - (kilobytes << 10)))
        yield
    finally:
        filler.unlink(missing_ok=True)


def _lost_file(round_: Round) -> None:
    """Take a data file of one table away for one batch: that table is parked, the others go on."""
    files = sorted(Path(round_._root).glob("[!_]*/*/*.parquet"))
    if not files:
        round_.heal()
        return
    file = round_.rnd.choice(files)
    aside = round_.folder / "aside.parquet"
    shutil.move(file, aside)
    round_.sync()
    shutil.move(aside, file)
    round_.heal()


KINDS: dict[str, Callable[[Round], None]] = {
    **{fault: _store(fault) for fault in FAULTS},
    "command killed": _killed("command"),
    "engine killed": _killed("engine"),
    "stopped beyond lease": _stopped,
    "second host": _second_host,
    "lost ledger": _lost_ledger,
    "broker": _broker,
    "postgres": _postgres,
    "disk full": _disk_full,
    "lost file": _lost_file,
}
