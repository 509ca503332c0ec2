# SPDX-License-Identifier: Apache-2.0
"""Damage one record, one stored row or one option, and see who notices: ``python -m tests.histories.mutants``.

A mutant ends ``equal`` (the damage meant nothing), ``parked`` or ``refused`` (a table or the batch, with a reason),
``counted`` (a contradiction, a lost value or a quarantined record is in a result). Otherwise a table is ``ok`` and
differs from the source: ``verify`` names it; or no reader can see it, because the format is ordered by ``clock`` and
the change may be late, the table has ``no key``, the row is ``not changed later``, or no record contradicts a wrong
``option``; or it is ``silent``: somebody has to look why.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.ddl.server import OPTIONS as SERVER_OPTIONS
from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.formats.contract import Records
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from tests.histories.cases import case_of
from tests.histories.frames import teach
from tests.histories.log import Log
from tests.histories.place import lake_folder
from tests.histories.records import Record
from tests.histories.run import Case, Replay
from tests.histories.source import Picture
from tests.histories.tools import TOOLS
from tests.locations import table_location

OF_RECORDS = ("removed", "doubled", "altered", "moved")
OF_ROWS = ("row changed", "row removed", "row added")
OF_OPTIONS = ("wrong option",)
KINDS = (*OF_RECORDS, *OF_ROWS, *OF_OPTIONS)
OUTCOMES = (
    *("equal", "parked", "refused", "counted", "verify"),
    *("clock", "no key", "not changed later", "option", "silent"),
)
_EACH = 4  # mutants of one history and kind
_WRONG_OPTIONS: Mapping[str, Sequence[str]] = {
    "lower_case_table_names": ("1",),
    "explicit_defaults_for_timestamp": ("false",),
    "server": ("mysql", "mariadb"),
    "session_time_zone": ("+08:00",),
    "timezone": ("America/New_York", "Asia/Shanghai", "UTC"),
    "connector": ("postgresql",),
    "time.precision.mode": ("adaptive", "connect", "nanoseconds", "isostring"),
    "decimal.handling.mode": ("double", "string"),
    "binary.handling.mode": ("base64", "hex"),
    "bigint.unsigned.handling.mode": ("precise",),
    "text_as_base64": ("true", "false"),
    "default_database": ("other",),
    "binlog_row_image": ("minimal", "noblob"),
    "dialect": ("oracle",),
    "dbType": ("OB_ORACLE", "DB2"),
    "sequenceEnabled": ("true", "false"),
    "null_in_both": ("unchanged",),
    "tenant": ("other",),
    "null_symbols": ("",),
    "absent_symbols": ("NULL",),
}
# no record contradicts them (docs/concepts/equal.md, Wrong options)
UNSEEN_OPTIONS = frozenset(
    {
        *("timezone", "session_time_zone", "tenant", "text_as_base64", "null_in_both"),
        *("time.precision.mode", "decimal.handling.mode"),
    }
)


@dataclass
class Mutant(Replay):
    """A history with one damage.

    :param kind: of the damage.
    :param number: of the mutant; it chooses the record.
    """

    kind: str = "removed"
    number: int = 0
    problems: list[str] = field(default_factory=list)
    damaged: bool = False
    _picture: Picture | None = None
    wrong: Mapping[str, str] = field(default_factory=dict)
    touched: list[tuple[int, Record]] = field(default_factory=list)  # records as they were and are, with their places

    def run(self) -> list[str]:
        """Run all batches; return what differs."""
        self._hand = random.Random(f"{self.case.seed} {self.kind} {self.number}")
        if self.kind in OF_RECORDS:
            self._damage_record()
        if self.kind in OF_OPTIONS:
            self._mistake_option()
        self.problems = super().run() if self.damaged or self.kind in OF_ROWS else []
        return self.problems

    def _damage_record(self) -> None:
        where = self._hand.choice([where for where, records in self.log.partitions.items() if records])
        records, orders = self.log.partitions[where], self._orders[where]
        number = self._hand.randrange(len(records))
        self.damaged = True
        self.touched.append((orders[number], records[number]))
        match self.kind:
            case "removed":
                del records[number], orders[number]
            case "doubled":
                later = self._hand.randint(number + 1, len(records))
                records.insert(later, records[number])
                orders.insert(later, orders[later - 1])
            case "altered":
                value = records[number].value
                digits = [n for n, byte in enumerate(value or b"") if byte in b"0123456789"]
                if value is None or not digits:
                    self.damaged = False
                    return
                at = self._hand.choice(digits)
                digit = self._hand.choice([byte for byte in b"0123456789" if byte != value[at]])
                records[number] = replace(records[number], value=value[:at] + bytes([digit]) + value[at + 1 :])
                self.touched.append((orders[number], records[number]))
            case "moved":
                others = [other for other in self.log.partitions if other[0] == where[0] and other != where]
                if not others:
                    self.damaged = False
                    return
                other = self._hand.choice(others)
                at = sum(order < orders[number] for order in self._orders[other])
                self.log.partitions[other].insert(at, replace(records[number], partition=other[1]))
                self._orders[other].insert(at, orders[number])
                del records[number], orders[number]

    def _mistake_option(self) -> None:
        """State one option as the tool was not set up."""
        stated = super()._options()
        own = [name for name in _WRONG_OPTIONS if name in {**self._format.options, **SERVER_OPTIONS}]
        wrong = [(name, value) for name in own for value in _WRONG_OPTIONS[name] if stated.get(name) != value]
        name, value = self._hand.choice(wrong)
        self.wrong, self.damaged = {name: value}, True

    def _options(self) -> dict[str, str]:
        return {**super()._options(), **self.wrong}

    def _batch(self, number: int, chunks: list[Any], picture: Any) -> list[str]:
        last = number == self.case.batches
        problems = super()._batch(number, chunks, picture if last else None)
        if last:
            self._picture = picture
        if self.kind in OF_ROWS and not self.damaged and not last and self._hand.random() < 0.6:
            self._damage_row()
        return problems

    def _damage_row(self) -> None:
        """Change a stored row as a fault of this program would: the commit is the table's own."""
        tables = [state for state in self.states.values() if state.state == "ok" and state.location]
        self._hand.shuffle(tables)
        for state in tables:
            table = self._sink.open(table_location(str(self.root), state.database, state.table))
            app = f"cdc/histories/{state.table_id}/0"
            rows, facts = (table.rows(), table.facts(app)) if table.exists else (None, None)
            if rows is None or not rows.num_rows or facts is None:
                continue
            row = self._hand.randrange(rows.num_rows)
            damaged = self._damaged(rows, row)
            if damaged is None:
                continue
            seq = table.applied(app)
            assert seq is not None
            action = Action("overwrite", Commit(app, seq, facts), damaged)
            self._sink.task_writer().commit(table, action)
            self.damaged = True
            return

    def _damaged(self, rows: pa.Table, row: int) -> pa.Table | None:
        apart = [rows.slice(0, row), rows.slice(row, 1), rows.slice(row + 1)]
        if self.kind == "row removed":
            return pa.concat_tables([apart[0], apart[2]])
        numbers = [n for n, field_ in enumerate(rows.schema) if pa.types.is_integer(field_.type)]
        texts = [n for n, field_ in enumerate(rows.schema) if pa.types.is_string(field_.type)]
        if not numbers + texts:
            return None
        column = self._hand.choice(numbers + texts)
        field_ = rows.schema.field(column)
        value = self._hand.randint(0, 100) if column in numbers else f"x{self._hand.randint(0, 9)}"
        other = apart[1].set_column(column, field_, pa.array([value], field_.type))
        if other == apart[1]:
            return None
        if self.kind == "row added":
            return pa.concat_tables([rows, other])
        return pa.concat_tables([apart[0], other, apart[2]])

    def outcome(self) -> str:
        """Return how it ended."""
        if any("the batch failed" in problem for problem in self.problems):
            return "refused"
        wrong = [p for p in self.problems if "a false contradiction" not in p]
        unsettled = {f"{s.database}.{s.table}" for s in self.states.values() if s.state not in ("ok", "dropped")}
        counted = {item["table"] for item in self.contradictions}
        silent = [p for p in wrong if not any(f" {name}" in f" {p}" for name in unsettled | counted)]
        if silent and not self.quarantined:
            if self.kind in OF_OPTIONS:
                unseen = UNSEEN_OPTIONS
                if all(problem.endswith(("there is no table", "has a state but no table")) for problem in silent):
                    unseen = unseen | {"lower_case_table_names"}  # rows show it; this table has none
                return "option" if self.wrong.keys() <= unseen else "silent"
            return self._verified() if self.kind in OF_ROWS else self._unseen({p.split(": ")[0] for p in silent})
        if unsettled or self.parked:
            return "parked"
        return "counted" if counted or wrong else "equal"

    def _verified(self) -> str:
        """Return whether ``verify`` names what differs."""
        names = [f"{state.database}.{state.table}" for state in self.states.values() if state.state == "ok"]
        with tempfile.TemporaryDirectory() as scratch:
            job = replace(self._job(self.case.batches + 1, []), order=Rebuild(names, compared=True), scratch=scratch)
            result = self._sync(job)
        differ = {f"{line.database}.{line.table}" for line in result.tables if line.contradictions}
        return (
            "verify" if all(any(f"{name}: " in problem for name in differ) for problem in self.problems) else "silent"
        )

    def _unseen(self, names: set[str]) -> str:
        """Return why no reader can see that tables differ."""
        if self._tool.by_clock:
            return "clock"
        assert self._picture is not None
        contents = [content for name, content in self._picture.tables.items() if ".".join(name) in names]
        keys = {name for content in contents for name in content.structure.key}
        if any(not content.structure.key for content in contents):
            return "no key"
        teach(self._format)
        damaged = [image for _, record in self.touched for image in self._images(record)]
        newest = max(order for order, _ in self.touched)
        for where, records in self.log.partitions.items():
            for order, record in zip(self._orders[where], records, strict=True):
                if order > newest and any(_same(keys, image, one) for image in self._images(record) for one in damaged):
                    return "silent"
        return "not changed later"

    def _images(self, record: Record) -> list[dict[str, Any]]:
        """Return all images of rows in a record; a part of one has none."""
        batch = self._format.decode(
            Records(record.topic, 0, [0], [record.time], [record.key], [record.value], [record.headers])
        )
        texts = [text for name in ("before", "after") for text in batch.column(name).to_pylist() if text is not None]
        return [json.loads(text) for text in texts]


def _same(keys: Collection[str], image: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two images are of one row, as far as they show."""
    both = [name for name in keys if name in image and name in other]
    return bool(both) and all(image[name] == other[name] for name in both)


def calm(name: str, seed: int) -> Case:
    """Return a history in which nothing else happens: its batches end at one moment, and nobody dies."""
    quiet = dict.fromkeys(("ragged", "doubles", "crashes", "repeats", "losses", "recreated"), 0.0)
    case = case_of(name, seed, sizes=(10, 16))
    return replace(case, batches=4, ends=(), late=0, restarts=0, replays=0, **quiet)


def outcomes(
    name: str, seeds: Sequence[int], kinds: Sequence[str], silent: list[str], each: int = _EACH
) -> dict[str, Counter[str]]:
    """Return how the mutants of some histories end, by kind.

    :param silent: takes descriptions of those that nobody noticed.
    :param each: mutants of one history and kind.
    """
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    log = Log()
    with pytest.MonkeyPatch.context() as patch, lake_folder() as lake:
        log.install(patch)
        for seed in seeds:
            case = calm(name, seed)
            if Replay(case, log, lake).run():
                continue
            for kind in kinds:
                for number in range(each):
                    mutant = Mutant(case, log, lake, kind=kind, number=number)
                    mutant.run()
                    if not mutant.damaged:
                        continue
                    outcome = mutant.outcome()
                    counts[kind][outcome] += 1
                    if outcome in ("silent", "option"):
                        silent.append(f"{name} seed {seed} {kind} {number}: {dict(mutant.wrong)} {mutant.problems[:2]}")
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories.mutants", description=__doc__)
    parser.add_argument("--histories", type=int, default=20, help="of each format (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--format", action="append", choices=sorted(TOOLS), help="only this format; may be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind")
    parser.add_argument("--silent", action="store_true", help="name those that nobody noticed")
    options = parser.parse_args(arguments)
    print("| format | damage | " + " | ".join(OUTCOMES) + " |\n|---|---|" + "---|" * len(OUTCOMES))
    for name in options.format or list(TOOLS):
        silent: list[str] = []
        seeds = range(options.seed, options.seed + options.histories)
        for kind, counts in outcomes(name, seeds, options.kind or KINDS, silent).items():
            print(f"| {name} | {kind} | " + " | ".join(str(counts[outcome]) for outcome in OUTCOMES) + " |", flush=True)
        for line in silent if options.silent else ():
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
