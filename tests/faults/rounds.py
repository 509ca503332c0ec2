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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import yaml
from confluent_kafka import Producer

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import NEW_GENERATION
from airflow_provider_cdc.ledger import Ledger
from tests.faults.services import Services
from tests.faults.store import FAULTS
from tests.faults.targets import BY_REST, TABLES, Target
from tests.histories.cases import case_of
from tests.histories.frames import registry_of
from tests.histories.log import Log
from tests.histories.neutral import creates
from tests.histories.run import Replay
from tests.histories.source import Name
from tests.histories.tools import PREFIX, TOOLS
from tests.services import forked

if TYPE_CHECKING:
    from tests.histories.records import Record

ROOT = Path(__file__).parents[2]
LEASE_SECONDS = 3
AGAIN, DATA = 5, 3
_APPROVALS = 8  # of new logs of the source, at most, for one batch
_UNCLEAR = "source.generation_unclear"  # the log does not show which of two logs a record is of: only a user can say
# a registry in this process dies with it: the hosts of a round are others
FORMATS = [name for name, tool in TOOLS.items() if not tool.by_clock and not registry_of(name)]


@dataclass
class Ending:
    """Report how a command ended.

    :param error: error document, None without one.
    :param reasons: why tables are parked.
    :param waits: whether tables wait for records that the source has not sent yet.
    """

    code: int
    error: dict[str, Any] | None
    text: str
    reasons: Sequence[str] = ()
    waits: bool = False

    @property
    def of_store(self) -> list[str]:
        """Return the reasons for which tables are parked that are faults of the store or the catalog."""
        return [reason for reason in self.reasons if reason.startswith("[sink.")]

    @property
    def is_to_repeat(self) -> bool:
        """Return whether the same command may end otherwise."""
        return self.code == AGAIN and not self.waits

    @property
    def fault(self) -> str | None:
        """Return what is wrong with this ending, None where it reports what happened, where, and what to do."""
        if "Traceback" in self.text:
            return f"a traceback: {self.text[-1500:]}"
        if self.code not in (0, DATA, AGAIN, -signal.SIGKILL):
            return f"exit code {self.code}: {self.text[-600:]}"
        if self.is_to_repeat and (self.error is None or not self.error["code"] or not self.error["hint"]):
            return f"no code or no hint: {self.error or self.text[:2_000]}"
        return None


@dataclass
class _Followed(Replay):
    """Know what a history's tables must hold, and read those that a pipeline wrote.

    :param target: the pipeline's tables.
    """

    target: Target | None = None

    def _rows(self, name: Name) -> pa.Table | None:
        assert self.target is not None
        return self.target.rows(name)


@dataclass
class Round:
    """A pipeline of its own over topics of its own.

    :param kind: name of the fault.
    :param batches: how many there are, with a fault in each.
    :param sink: what kind of tables it writes, empty for one by the number.
    :param store: scheme of the store that fails, where that is the fault; all but S3 hold tables of Delta only.
    :param problems: what is wrong at the end, empty when every table equals the model.
    :param endings: exit codes and error codes that commands ended with.
    """

    number: int
    kind: str
    services: Services
    folder: Path
    batches: int = 3
    sink: str = ""
    store: str = "s3"
    problems: list[str] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rnd = random.Random(f"fault {self.number}")
        case = case_of(FORMATS[self.number % len(FORMATS)], self.number)
        self.replay = _Followed(case, Log(), self.folder / "lake")
        self._tool = TOOLS[case.format]
        partitions = self.replay.log.partitions
        if all(topic == self._tool.schema_topic or topic.startswith("__") for topic, _ in partitions):
            partitions[f"{PREFIX}rows", 0] = []  # a history without rows: a pipeline has to name a topic of rows
        self._prefix = f"r{self.number}x{os.getpid()}"
        self._postgres = self.kind == "postgres"
        self.target = self._target()
        self.replay.target = self.target
        (self.folder / "home").mkdir(parents=True)

    def _target(self) -> Target:
        usual = [name for name in TABLES if (name in BY_REST) is (self.kind == "catalog")]
        if self.store != "s3":
            usual = [name for name in usual if name.startswith("delta")]
        kind = self.sink or self.rnd.choice(usual)
        root, lake, catalog = str(self.folder / "lake"), None, ""
        if self.kind in FAULTS:
            lake = self.services.lake(self.store)
            root = f"{lake.address.root}/{self._prefix}"
        if kind in BY_REST:
            catalog = self.services.catalog.uri
        elif lake is not None and kind.startswith("iceberg"):
            catalog = f"sqlite:///{self.folder}/catalog.db"
        return Target(kind, root, catalog, self._prefix, lake)

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
            "sink": self.target.section(),
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
            **self.target.environment(),
        }
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
        reasons = [table["reason"] for table in result.get("parked") or ()]
        ending = Ending(code, result.get("error"), shown + err, reasons, result.get("status") == "waiting")
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
            if not self.sync(home).is_to_repeat:
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

    def run(self, fault: Callable[[Round], None]) -> None:
        """Carry the round out.

        :param fault: reads the records of a batch while something happens.
        """
        partitions: dict[str, int] = {}
        for topic, partition in self.replay.log.partitions:
            partitions[self._topic(topic)] = max(partitions.get(self._topic(topic), 0), partition + 1)
        self.services.broker.create_topics(partitions)
        try:
            for records in self.slices():
                self.produce(records)
                fault(self)
            self.heal()
            self.problems += self._unequal()
        finally:
            if Path(self.target.root).is_mount():
                subprocess.run(["umount", "--lazy", self.target.root], check=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _unequal(self) -> list[str]:
        replay = self.replay
        documents = Ledger(self.ledger_url).tables(self._prefix)
        replay.states = {table_id: TableState.from_document(document) for table_id, document in documents.items()}
        picture = replay._sent[-1].picture if replay._sent else None
        if picture is None or any(_UNCLEAR in ending for ending in self.endings):
            return []
        return replay._differences(picture)
