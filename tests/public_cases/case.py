# SPDX-License-Identifier: Apache-2.0
"""Set-ups of public bug reports and recorded situations: records, pipeline, and the outcome that is right."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.config import CdcPipeline
from tests.services.capture import Record

DATA = Path(__file__).parent / "data"
NAMES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())
UNSETTLED = ("parked", "waiting")
# where the right outcome is rows, or a reason that says what to do: a word of that reason
REASONS = {
    "binary-hex-unstated": "binary.handling.mode",
    "column-exclude-list": "exclude_columns",
    "ticdc-debezium-protocol": "canal-json",
}
Partition = tuple[str, int]
Ends = dict[Partition, int]


@dataclass(frozen=True)
class Case:
    """One set-up.

    :param pipeline: ``format``, ``topics``, and where they are stated ``schema_topic``, ``options``, ``tables``; and
        ``batches``, the end offsets of all batches but the last.
    :param records: in the order in which they reached Kafka.
    :param outcome: ``rows``, ``parked_or_rows`` by table, ``refused`` or ``exit``.
    """

    name: str
    pipeline: dict[str, Any]
    records: list[Record]
    outcome: dict[str, Any]

    def config(self, root: Path, **more: Any) -> dict[str, Any]:
        """Return the pipeline as its file states it."""
        stated = ("topics", "format", "schema_topic", "options")
        return {
            "name": "case",
            "source": {key: self.pipeline[key] for key in stated if key in self.pipeline},
            "sink": {"type": "delta", "root": str(root)},
            "tables": self.pipeline.get("tables", {}),
            **more,
        }

    def cuts(self) -> Iterator[list[int]]:
        """Yield the numbers of records after which batches end: one batch, two (each cut), one for each record."""
        count = len(self.records)
        yield [count]
        for first in range(1, count):
            yield [first, count]
        if count > 2:
            yield list(range(1, count + 1))

    def stated_cut(self) -> list[Ends]:
        """Return the ends of the batches as the report had them."""
        batches = [{(topic, part): end for topic, part, end in ends} for ends in self.pipeline.get("batches", ())]
        return [*batches, self.ends(len(self.records))]

    def ends(self, count: int) -> Ends:
        """Return the end offsets behind the first records."""
        ends: Ends = {(record.topic, record.partition): 0 for record in self.records}
        for record in self.records[:count]:
            ends[record.topic, record.partition] = record.offset + 1
        return ends


@dataclass
class Ending:
    """Hold how a run of batches ended.

    :param refused: why nothing more was applied, empty where every batch ended.
    :param exits: exit codes of the commands.
    :param tables: state, reason and rows by table.
    """

    refused: str = ""
    exits: list[int] = field(default_factory=list)
    tables: dict[str, tuple[str, str, Counter[str] | None]] = field(default_factory=dict)

    @property
    def kind(self) -> dict[str, str]:
        """The outcome of each table: ``ok`` or ``unsettled``."""
        if self.refused:
            return {"all": "refused"}
        return {name: "unsettled" if state in UNSETTLED else state for name, (state, _, _) in self.tables.items()}


def read_case(name: str) -> Case:
    """Return a set-up by its name."""
    folder = DATA / name
    records = [_record(json.loads(line)) for line in (folder / "records.jsonl").read_text().splitlines()]
    records.sort(key=lambda record: record.timestamp)  # stable: records of one millisecond stay as the file has them
    expected = json.loads((folder / "expected.json").read_text())
    return Case(name, json.loads((folder / "pipeline.json").read_text()), records, expected["outcome"])


def problem(case: Case, ending: Ending) -> str:
    """Return what is wrong with an ending, empty where it is right."""
    outcome, hint = case.outcome, REASONS.get(case.name, "")
    if "exit" in outcome:
        return "" if ending.exits[-1:] == [outcome["exit"]] else f"exits {ending.exits}: {ending.tables}"
    if "refused" in outcome:
        return "" if ending.refused else f"not refused: {ending.tables}"
    if ending.refused and "parked_or_rows" in outcome:
        return ""
    if ending.refused:
        return "" if hint and hint in ending.refused else f"refused: {ending.refused}"
    may_park = "parked_or_rows" in outcome
    problems = []
    for table, rows in (outcome.get("parked_or_rows") or outcome["rows"]).items():
        state, reason, stored = ending.tables.get(table, ("no state", "", None))
        if state in UNSETTLED:
            if not may_park and not (hint and hint in reason):
                problems.append(f"{table} {state}: {reason}")
        elif state != "ok" or stored != Counter(json.dumps(row) for row in rows):
            problems.append(f"{table} {state} {stored}")
    return "; ".join(problems)


def stored_rows(columns: Sequence[Sequence[Any]]) -> Counter[str]:
    """Return rows, given by column, as the expectations write them."""
    return Counter(json.dumps([_plain(value) for value in row]) for row in zip(*columns, strict=True))


def checked(config: Mapping[str, Any]) -> CdcPipeline:
    """Return the pipeline that a file would make.

    :raises ConfigurationError: it has problems.
    """
    return CdcPipeline.from_dict(config)


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return f"hex:{value.hex()}"
        case Decimal():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case list():
            return [_plain(item) for item in value]
    return value


def _record(entry: dict[str, Any]) -> Record:
    key, value = (None if entry[side] is None else base64.b64decode(entry[side]) for side in ("key", "value"))
    headers = tuple((name, None if text is None else base64.b64decode(text)) for name, text in entry["headers"] or ())
    return Record(entry["topic"], entry["partition"], entry["offset"], entry["timestamp"], key, value, headers)
