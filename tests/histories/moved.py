# SPDX-License-Identifier: Apache-2.0
"""Random histories in which operators move, copy and respell lakes, and change and take back what they stated."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import Adoption, JobDocument, Maintenance, Rebuild, Result, TableState
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.model.status import TableStatus
from spark_jobs.driver.maintenance import maintain
from spark_jobs.driver.run_batch import sync
from spark_jobs.lake.identity import adopt
from tests.histories.place import digests
from tests.histories.run import Replay
from tests.histories.source import Picture
from tests.histories.tools import TOOLS
from tests.locations import table_location

_EACH = 100  # batch numbers from one batch to the next
_UNSETTLED = (TableStatus.PARKED, TableStatus.WAITING)
# formats that read another one's records without an error for each, or with
_WRONG_FORMAT = {"debezium-json": "dtle-json", "dtle-json": "debezium-json", "canal-json": "debezium-json",
                 "oms-canal": "canal-json", "drs-json": "drs-json-c", "oms-default": "canal-json"}  # fmt: skip
_ACTS = (
    "respell", "respell", "copy", "move", "option", "take back", "exclude", "include", "lower", "maintain", "rebuild",
)  # fmt: skip
_OPTIONS: tuple[dict[str, Any], ...] = (
    {"tinyint1_as_boolean": True},
    {"zero_dates": "text"},
    {"on_truncate": "ignore"},
)


class Moved(Replay):
    """Lets operators act on the lake and on what the pipeline states, before each batch.

    In the end everything is stated as in the beginning. A table is equal to the source then, or parked; parked only
    where an act may lose something. What a lake was copied from, and what others own, never changes by a byte.

    :ivar acts: what was done, by name.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hand = random.Random(f"{self.case.format} {self.case.seed} hand")
        self._base = self.root
        self.acts: dict[str, int] = {}
        self._may_park = False
        self._policy: dict[str, Any] = {}
        self._excluded: set[str] = set()
        self._lower = self._lower_at_first = False
        self._spelling = ""
        self._unchanged: dict[Path, dict[str, str]] = {}  # folders that nobody may change, with their digests
        self._number = 0
        self._second: Second | None = None
        self._lake: LakeIdentity | None = None
        self._recovers = False
        self._ignores_truncate = False

    def run(self) -> list[str]:
        """Run all batches; return what differs, in words: empty when all is well."""
        return super().run() + self._changed_outside()

    def _clear(self) -> None:
        shutil.rmtree(self._base, ignore_errors=True)
        self._move_to(self._base / "lake")
        self.root.mkdir(parents=True)
        outside = self._base / "outside"
        outside.mkdir()
        (outside / "data.txt").write_text("not ours")
        self._unchanged[outside] = digests(outside)
        if self._hand.random() < 0.3:
            self._put_foreign_table()
        if self._hand.random() < 0.3:
            self._second = Second()
            self._may_park = True

    # ---- acts

    def _did(self, act: str, *, may_park: bool = False) -> None:
        self.acts[act] = self.acts.get(act, 0) + 1
        self._may_park |= may_park
        self.story.append(f"    {act}")

    def _put_foreign_table(self) -> None:
        """Put a table of somebody else where one of the source's tables is to lie."""
        names = sorted(self._sent[-1].picture.tables) if self._sent and self._sent[-1].picture else []
        if names:
            location = Path(table_location(str(self.root), *self._hand.choice(names)))
            write_deltalake(str(location), pa.table({"mine": [1, 2, 3]}))
            self._foreign = location.relative_to(self.root), digests(location)
            self._did("a foreign table", may_park=True)

    def _act(self) -> None:
        """Do something at random before a batch."""
        act = self._hand.choice(_ACTS)
        match act:
            case "respell":
                self._spelling = self._hand.choice(self._spellings())
                self._did("the root is spelled otherwise")
            case "copy" if self._seqs:
                self._copy()
            case "move" if self._seqs:
                self._move()
            case "option":
                self._policy |= self._hand.choice(_OPTIONS)
                self._did("an option is changed", may_park=True)
            case "take back":
                self._policy = {}
            case "exclude":
                tables = sorted({f"{s.database}.{s.table}" for s in self.states.values() if s.location})
                self._excluded |= set(tables[: self._hand.randint(0, 2)])
                self._did("tables are excluded")
            case "include":
                self._excluded = set()
            case "maintain" if self._seqs:
                order = Maintenance(1 << 20, self._hand.choice((0, 24)))
                for _ in range(self._hand.randint(1, 2)):
                    maintain(self._job(self._next(), []), order, {}, self.run_tasks)
                self._did("tables are maintained")
            case "rebuild" if self._seqs:
                self._rebuild()
            case "lower":
                self._lower = not self._lower
                self._did("lower_case_table_names is stated by mistake")

    def _rebuild(self) -> None:
        """Rebuild a table from the change log, perhaps twice."""
        well = sorted({f"{s.database}.{s.table}" for s in self.states.values() if s.state == TableStatus.OK})
        for _ in range(self._hand.randint(1, 2)) if well else ():
            order = Rebuild([self._hand.choice(well)])
            seq = self._next()
            self.log.arm(None)
            result = sync(replace(self._job(seq, []), order=order), {}, self.run_tasks, lambda line: None)
            self._take_over(seq, result.document())
            self._did("a table is rebuilt")

    def _spellings(self) -> list[str]:
        link = self._base / f"link-{self.root.name}"
        if not link.is_symlink():
            link.symlink_to(self.root)
        parent, name = self.root.parent, self.root.name
        return [
            f"file://{self.root}",
            f"{parent}//{name}",
            f"{parent}/./{name}",
            f"{self.root}/",
            str(link),
            str(self.root),
        ]

    def _copy(self) -> None:
        """Go on with a copy: refused until it is adopted, and the original stays as it is."""
        copy = self._base / f"copy-{self._next()}"
        shutil.copytree(self.root, copy)
        original, before = self.root, digests(self.root)
        self._demand_refused(copy)
        assert digests(original) == before, "a refused copy changed the original"
        self._did("the lake is copied")
        if self._hand.random() < 0.6:
            self._unchanged[original] = before
            self._move_to(copy)
            self._adopt()
            self._did("the copy is adopted")

    def _move(self) -> None:
        """Move the lake: refused until it is adopted."""
        folder = self._base / f"moved-{self._next()}"
        self.root.rename(folder)
        self._demand_refused(folder)
        self._move_to(folder)
        self._adopt()
        self._did("the lake is moved and adopted")

    def _move_to(self, folder: Path) -> None:
        self.root, self._spelling = folder, str(folder)

    def _adopt(self) -> None:
        self._lake = adopt(replace(self._job(self._next(), []), order=Adoption()), {}).lake

    def _demand_refused(self, folder: Path) -> None:
        before = digests(folder)
        job = self._job(self._next(), [])
        job = replace(job, sink_root=str(folder), lake_root=f"{folder}/.log" if job.lake_root else "")
        self.log.arm(None)
        try:
            sync(job, {}, self.run_tasks, lambda line: None)
        except CdcError as error:
            assert error.code == "lake.moved", error
        else:
            raise AssertionError("a lake at another folder was written to without a word")
        assert digests(folder) == before, "a lake at another folder was changed"

    def _next(self) -> int:
        self._number += 1
        return self._number

    # ---- batches

    def _job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        job = super()._job(number, chunks)
        rules = job.tables.document()
        if self._excluded:
            rules = {**rules, "exclude": sorted(self._excluded)}
        lower = self._lower if chunks else self._lower_at_first
        options = {**job.format_options, "lower_case_table_names": "1"} if lower else job.format_options
        stated = json.dumps([self._policy, sorted(self._excluded), lower])
        return replace(
            job,
            sink_root=self._spelling,
            lake_root=f"{self._spelling}/.log" if job.lake_root else "",
            policy=RunPolicy(**{**job.policy.document(), **self._policy}),
            tables=TableRules.from_document(rules),
            format_options=options,
            lake=self._lake,
            fingerprint=hashlib.blake2b(stated.encode()).hexdigest(),
        )

    def _take_over(self, seq: int, result: Mapping[str, Any]) -> None:
        super()._take_over(seq, result)
        if result.get("lake") is not None and not self._recovers:
            self._lake = LakeIdentity.from_document(result["lake"])

    def _known_job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        self._recovers = True  # a lost ledger takes over earlier batches, of before the lake was adopted
        try:
            return super()._known_job(number, chunks)
        finally:
            self._recovers = False

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        self._number = _EACH * number
        count = len(self.case.ends) + 1 if self.case.ends else self.case.batches
        for _ in range(self._hand.randint(0, 2)):
            self._act()
        if number == count:
            self._policy, self._excluded = {}, set()
        self._ignores_truncate |= self._policy.get("on_truncate") == "ignore" and bool(chunks)
        if number == 1 and chunks and self._hand.random() < 0.15 and self._with_wrong_format(chunks):
            chunks = []
        problems = self._work(self._next(), chunks)
        if problems or "the pipeline" in self.parked:
            return problems
        if number == count:
            problems = self._work(self._next(), [], settles=True)
        if problems or picture is None or self._policy or self._excluded:
            return problems
        return self._verdict_of(picture)

    def _work(self, seq: int, chunks: list[OffsetRange], *, settles: bool = False) -> list[str]:
        """Carry out a batch; a mistake in the options is taken back where it is refused."""
        if settles and self._seqs:
            result = self._sync(self._job(seq, []))
            self._take_over(seq, result.document())
            return []
        if chunks and self._lower != self._lower_at_first and self._seqs:
            named = self._named_with_capitals()
            self.log.arm(None)
            try:
                result = self._sync(self._job(seq, chunks))
            except CdcError as error:
                self.story.append(f"    refused: {error.code}")
                self._lower = self._lower_at_first
            else:
                if named:
                    return [f"tables with rows got other names without a word: {named}"]
                self._take_over(seq, result.document())
                self._lower_at_first, self._may_park, chunks = self._lower, True, []
        if chunks and not self._seqs:
            self._lower_at_first = self._lower
        problems = super()._batch(seq, chunks, None)
        # what was read in another format has other marks of the log
        ends = ["source.generation_unclear"] if "the format is wrong at first" in self.acts else []
        if self._lower and any("source.option_contradicted" in problem for problem in problems):
            self.story.append("    refused: source.option_contradicted")
            self._lower = self._lower_at_first = False
            problems = super()._batch(seq, chunks, None)
            ends.append("source.names_changed")  # tables got rows under names in lower case before a row showed it
        if code := next((code for code in ends for problem in problems if code in problem), None):
            self.parked["the pipeline"] = code  # another pipeline is what helps
            return []
        if self._second is not None and not self._second.is_over and chunks and not problems:
            self._second.batch(self, self._job(seq, chunks))
        return problems

    def _named_with_capitals(self) -> list[str]:
        """Return the names of tables with rows that the option changes."""
        names = [(s.database, s.table) for s in self.states.values() if s.state == TableStatus.OK]
        named = [name for name in names if "".join(name) != "".join(name).lower()]
        return [".".join(name) for name in named if (rows := self._rows(name)) is not None and rows.num_rows]

    def _with_wrong_format(self, chunks: list[OffsetRange]) -> bool:
        """Run the first batch with a wrong format; return whether it ended and so read the records."""
        wrong = _WRONG_FORMAT.get(self.case.format)
        if wrong is None:
            return False
        tool = TOOLS[wrong]
        self._did("the format is wrong at first", may_park=True)
        seq = self._number + 1
        job = replace(self._job(seq, chunks), format=wrong, format_options=dict(tool.options))
        self.log.arm(None)
        try:
            result = sync(job, {}, self.run_tasks, lambda line: None)
        except CdcError as error:
            self.story.append(f"    refused: {error.code}")
            return False
        self._lower_at_first = self._lower
        self._take_over(self._next(), result.document())
        return True

    # ---- verdict

    def _verdict_of(self, picture: Picture) -> list[str]:
        if self._lower_at_first:  # the tables have other names than the model's, from the first batch on
            self.parked["the pipeline"] = "names in lower case"
            return []
        if not self._may_park:
            return self._differences(picture)
        problems = []
        for name, content in picture.tables.items():
            states = [s for s in self.states.values() if (s.database, s.table) == name and s.state != "dropped"]
            if any(state.state == TableStatus.OK for state in states):
                texts = self._compare(name, content)
                if self._ignores_truncate:  # what was left out stays left out when the policy is taken back
                    texts = [text for text in texts if not text.startswith("too much")]
                problems += [f"{'.'.join(name)} is ok and wrong: {text}" for text in texts]
            elif not states and content.rows:
                problems.append(f"{'.'.join(name)} has no state")
            for state in states:
                if state.state in _UNSETTLED:
                    self.parked[state.table_id] = state.code or state.reason[:40]
                    if state.code == "apply.fault":
                        problems.append(f"{'.'.join(name)} has a fault: {state.reason}")
                    if not state.reason:
                        problems.append(f"{'.'.join(name)} is {state.state} without a reason")
        return problems + (self._second.shared(self) if self._second else [])

    def _changed_outside(self) -> list[str]:
        changed = [str(folder.name) for folder, before in self._unchanged.items() if digests(folder) != before]
        if (foreign := getattr(self, "_foreign", None)) is not None:
            folder, before = foreign
            for lake in (self.root, *self._unchanged):
                if (lake / folder).is_dir() and digests(lake / folder) != before:
                    changed.append(f"{lake.name}/{folder}")
        return [f"{name} is not the pipeline's, and changed" for name in changed]


class Second:
    """Another pipeline over the same log and root; it gets what the first one does not have."""

    def __init__(self) -> None:
        self.states: dict[str, TableState] = {}
        self.is_over = False
        self._seqs: list[int] = []
        self._schema: list[dict[str, Any]] = []

    def batch(self, first: Moved, job: JobDocument) -> None:
        """Carry out a batch over the same records."""
        mine = replace(
            job,
            pipeline="second",
            lake=None,
            earlier=list(self._seqs),
            schema_changes=self._schema,
            states=list(self.states.values()),
        )
        try:
            result: Result = sync(mine, {}, first.run_tasks, lambda line: None)
        except CdcError as error:
            first.story.append(f"    the second pipeline ends: {error.code}")
            self.is_over = True  # a log that began again, for example, and nobody approves that here
            return
        document = result.document()
        self._seqs.append(job.seq)
        self._schema = self._schema + document["new_schema_changes"]
        self.states |= {state["table_id"]: TableState.from_document(state) for state in document["states"]}

    def shared(self, first: Moved) -> list[str]:
        """Return the names at which tables of both pipelines are well."""
        well = [
            {(s.database, s.table) for s in states.values() if s.state == TableStatus.OK}
            for states in (self.states, first.states)
        ]
        return [f"{'.'.join(name)} is ok in two pipelines" for name in well[0] & well[1]]
