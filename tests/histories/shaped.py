# SPDX-License-Identifier: Apache-2.0
"""Random histories whose tables have rules for their columns, against the same rules in plain Python."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.aging import WithAging
from tests.histories.approving import WithApprovals
from tests.histories.comparison import expected_value, lake_type
from tests.histories.ddl_statements import Create
from tests.histories.kinds import BITS, EPOCH, FRACTIONAL, TEXTS, Kind
from tests.histories.moded_table import OWN_COLUMNS
from tests.histories.random_kinds import COLUMNS
from tests.histories.run import Replay
from tests.histories.shaped_rows import Shaped, lasts, unlike, unlike_before, versions, without, wrong_spans
from tests.histories.source import Column, Content, Name, Picture, Row, Structure, quoted

SALT = "a pinch"
MISFITS = (
    *("shape.key", "shape.type", "shape.name_taken", "shape.no_columns"),
    *("shape.column_unknown", "shape.expression", "shape.converted", "mode.needs_key", "mode.needs_order"),
    "shape.batch",
    # columns whose values stay out of the change log: under another name, of the key, all of them, or logged before
    *("came into the change log under the name", "is in no row (", "names all of its columns", "have the column"),
    *("neither has nor had", "apply.values_unlogged"),
)
"""Codes with which a table is parked that its rules do not fit."""
_HASHED = Kind("varchar", 64)
_DAYS = (None, 1, 1, 1, 2)
_MASKS = ("hash", "hash", "redact", "truncate(1)", "truncate(month)")


def random_rules(rnd: random.Random, creates: Sequence[Create]) -> dict[str, Any]:
    """Return rules for the columns of tables, which mostly fit their keys."""
    structures = [one.structure for one in creates]
    keys = {name.lower() for one in structures for name in one.key} if rnd.random() < 0.9 else set()
    free = [name for name in COLUMNS if name.lower() not in keys] or list(COLUMNS)
    names = rnd.choices(free, k=6)
    rules: dict[str, Any] = {}
    if rnd.random() < 0.6:
        rules["exclude"] = rnd.choice((names[0], [names[0].upper(), names[1] + "*"]))
    if rnd.random() < 0.6:
        rules["rename"] = {names[2]: "renamed", **({names[3]: "Re named 2"} if rnd.random() < 0.5 else {})}
    if rnd.random() < 0.7:
        rules["mask"] = {
            name: rnd.choice(_MASKS if name in free else _MASKS[:1]) for name in rnd.sample(COLUMNS, rnd.randint(1, 4))
        }
    if rnd.random() < 0.3 and len(structures) == 1:
        read = rnd.choice(structures[0].columns).name
        rules["add"] = {"computed": f"CASE WHEN {quoted(read)} IS NULL THEN 'none' ELSE 'some' END"}
    if rnd.random() < (0.5 if all(one.key for one in structures) else 0.02):
        rules["metadata"] = {"op": "_op", "position": "_position", "table": "_table", "source_time": "_time"}
        rules["metadata"] |= {"batch": "_batch"} if rnd.random() < 0.2 else {}
    if rnd.random() < 0.2 and not rules.keys() & {"rename", "add"}:
        rules["unlogged"] = [f"{names[4]}*"]
        rules |= {"mask": dict.fromkeys(rules["mask"], "redact")} if "mask" in rules else {}
    elif rnd.random() < 0.3:
        rules["type"] = dict.fromkeys(names[5:], "string")
    return rules or {"exclude": names[0]}


@dataclass(frozen=True)
class Rule:
    """The rules of tables.

    :param before: whether changes have the rows before them, too.
    :param key: columns of the key where these alone are tracked, so that a row has one version until it goes.
    :param null: column, and whether rows that the table has have a value in it; None for all rows.
    :param days: ``soft_delete_days``.
    """

    columns: dict[str, Any]
    null: tuple[str, bool] | None = None
    mode: str = "mirror"
    key: tuple[str, ...] = ()
    before: bool = False
    days: int | None = None

    @property
    def track(self) -> tuple[str, ...]:
        """The columns that are tracked: a rule cannot name one that it leaves out."""
        excluded = self.columns.get("exclude", [])
        patterns = [excluded] if isinstance(excluded, str) else excluded
        out = any(fnmatchcase(name.lower(), pattern.lower()) for name in self.key for pattern in patterns)
        return () if out else self.key

    def document(self) -> dict[str, Any]:
        """Return the rule as a pipeline states it."""
        rule = {"columns": self.columns, **({"mode": self.mode} if self.mode != "mirror" else {})}
        rule |= {"track": list(self.track)} if self.track else {}
        rule |= {"before": True} if self.before else {}
        rule |= {"soft_delete_days": self.days} if self.days else {}
        if self.null is None:
            return rule
        return {**rule, "filter": f"{quoted(self.null[0])} IS {'NOT ' if self.null[1] else ''}NULL"}


def random_rule(rnd: random.Random, create: Create) -> Rule:
    """Return the rules of one table."""
    read = rnd.choice(create.structure.columns).name
    had = {column.name for column in create.structure.columns}
    rules = {key: _of(had, stated) for key, stated in random_rules(rnd, [create]).items()}
    rule = Rule(
        {key: stated for key, stated in rules.items() if stated},
        (read, rnd.random() < 0.5) if rnd.random() < 0.5 and "unlogged" not in rules else None,
        rnd.choice(("mirror", "append", *(("soft_delete", "history") if create.structure.key else ()))),
    )
    if rule.mode == "soft_delete":
        return replace(rule, days=rnd.choice(_DAYS))
    if rule.mode == "append":
        return replace(rule, before=rnd.random() < 0.4)
    return replace(rule, key=create.structure.key) if rule.mode == "history" and rnd.random() < 0.4 else rule


def _of(had: set[str], stated: Any) -> Any:
    """Return a rule without the columns that a table did not begin with: others would park it, but for patterns."""
    if isinstance(stated, dict):
        return stated if {"op", "computed"} & stated.keys() else {k: v for k, v in stated.items() if k in had}
    return [name for name in ([stated] if isinstance(stated, str) else stated) if name in had or name.endswith("*")]


def shaped(structure: Structure, rules: Mapping[str, Any]) -> list[Shaped]:
    """Return the columns that a table must have by its rules; that they fit is known."""
    exclude = rules.get("exclude", [])
    exclude = [exclude] if isinstance(exclude, str) else exclude
    renamed = {_named(structure, name): to for name, to in rules.get("rename", {}).items()}
    retyped = {_named(structure, name): to for name, to in rules.get("type", {}).items()}
    columns = []
    for column in structure.columns:
        mask = next((mask for name, mask in rules.get("mask", {}).items() if _matches(column, name)), "")
        patterns = [*exclude, *(rules.get("unlogged", ()) if mask != "redact" else ())]
        if any(_matches(column, pattern) for pattern in patterns):
            continue
        type_, value = _masked(column, mask)
        kind = _HASHED if mask == "hash" else column.kind
        to = retyped.get(column.name)
        if to == "string":
            type_, kind, value = pa.string(), _HASHED, partial(_said, column.name, column.kind)
        elif to == "bigint":
            type_ = pa.int64()
        is_known = to != "string" or column.kind.name in _SAID
        columns.append(Shaped(renamed.get(column.name, column.name), type_, kind, value, is_known))
    for name, text in rules.get("add", {}).items():
        read = _named(structure, text.split("`", 1)[1].rsplit("`", 1)[0].replace("``", "`")) or ""
        columns.append(
            Shaped(name, pa.string(), _HASHED, lambda row, read=read: "none" if row[read] is None else "some")
        )
    return columns


_SAID = {*BITS, *TEXTS, "bit", "decimal", "date", *FRACTIONAL}  # the text of a DOUBLE is left to other tests


def _said(name: str, kind: Kind, row: Row) -> str | None:
    """Return the text of a value, as SQL writes it."""
    value = row[name]
    if value is None or kind.name not in _SAID:
        return None
    if kind.name in TEXTS:
        return str(expected_value(value, kind))
    return str(value) if kind.name == "bit" else kind.literal(kind.stored(value)).strip("'")


def _matches(column: Column, pattern: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in (column.name, *column.was))


def _named(structure: Structure, name: str) -> str | None:
    now = [column.name for column in structure.columns if column.name == name]
    now = now or [column.name for column in structure.columns if column.name.lower() == name.lower()]
    had = [c.name for c in structure.columns if name.lower() in [was.lower() for was in c.was]]
    return (now or had or [None])[-1]


def _masked(column: Column, mask: str) -> tuple[pa.DataType, Callable[[Row], Any]]:
    """Return type and values of a column."""
    kind, name = column.kind, column.name
    if mask == "hash":
        return pa.string(), lambda row: _hash(row[name], kind)
    if mask:
        return lake_type(kind), lambda row: _cut(row[name], kind, mask)
    return lake_type(kind), lambda row: expected_value(row[name], kind)


def _hash(value: Any, kind: Kind) -> str | None:
    if value is None:
        return None
    return hashlib.sha256(SALT.encode() + _text(value, kind)).hexdigest()


def _text(value: Any, kind: Kind) -> bytes:
    match kind.name, value:
        case _, bytes():
            return value
        case "decimal", _:
            text = format(Decimal(value), "f")
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return b"0" if text == "-0" else text.encode()
        case "double", _:
            return repr(value).encode()
        case "date", _:
            return str(date(1970, 1, 1) + timedelta(days=value)).encode()
        case (("datetime" | "timestamp"), _):
            moment = EPOCH + timedelta(microseconds=value)
            text = moment.isoformat(" ", "microseconds")
            return text.rstrip("0").rstrip(".").encode()
        case _:
            return str(expected_value(value, kind)).encode()


def _cut(value: Any, kind: Kind, mask: str) -> Any:
    """Return what is left of a value."""
    stored = lake_type(kind)
    if mask == "redact":
        if pa.types.is_string(stored):
            return "***"
        if pa.types.is_decimal(stored) and kind.name == "decimal":
            return str(kind.stored(Decimal(0)))
        return 0 if pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored) else None
    if value is None:
        return None
    if mask == "truncate(month)":
        if kind.name == "date":
            return (date(1970, 1, 1) + timedelta(days=value)).replace(day=1).toordinal() - 719163
        first = (EPOCH + timedelta(microseconds=value)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return (first - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, str):
        return value[:1]
    if isinstance(value, Decimal):
        return str(expected_value(kind.stored(Decimal(int(value / 10) * 10)), kind))
    return int(abs(value) // 10 * 10) * (-1 if value < 0 else 1)


def _hiding_more(rnd: random.Random, rule: Rule) -> Rule:
    """Return a rule that leaves out or masks one more column, or hides no more than before."""
    name, excluded = rnd.choice(COLUMNS), rule.columns.get("exclude", [])
    mask = "redact" if "unlogged" in rule.columns else "hash"
    if rnd.random() < 0.5:
        return replace(rule, columns={**rule.columns, "mask": {**rule.columns.get("mask", {}), f"{name}*": mask}})
    excluded = [excluded] if isinstance(excluded, str) else excluded
    return replace(rule, columns={**rule.columns, "exclude": [*dict.fromkeys([*excluded, f"{name}*"])]})


class ShapedReplay(WithApprovals, WithAging):
    """Replays a history into tables with rules for their columns, which change at times between batches.

    A RENAME may give a table other rules: half of the histories apply these, in the others people approve.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._state_rules(random.Random(f"{self.case.seed} shape"))
        self._turns = random.Random(f"{self.case.seed} turns")
        self._secrets = {"mask": {"salt": SALT}}
        self._asks = random.Random(f"{self.case.seed} asks").random() < 0.5
        self._mirrors = set[str]()  # tables that were one

    def _state_rules(self, rnd: random.Random) -> None:
        """State rules for all tables, and for some by their names."""
        creates = [create for create in self.case.statements if isinstance(create, Create)]
        keyed = all(create.structure.key for create in creates)
        mode = "soft_delete" if keyed and rnd.random() < 0.5 else "mirror"
        days = rnd.choice(_DAYS) if mode == "soft_delete" else None
        self._of_all = Rule(random_rules(rnd, creates), mode=mode, days=days)
        self._by_name = {".".join(create.name): random_rule(rnd, create) for create in creates if rnd.random() < 0.6}
        self.story.append(f"rules: {self._of_all}, {self._by_name}")

    def _change_rules(self) -> None:
        """State other rules, or hide more columns."""
        if self._turns.random() < 0.4:
            self._state_rules(self._turns)
            return
        self._of_all = _hiding_more(self._turns, self._of_all)
        self._by_name = {name: _hiding_more(self._turns, rule) for name, rule in self._by_name.items()}
        self.story.append(f"rules: {self._of_all}, {self._by_name}")

    def _rules(self) -> dict[str, Any]:
        rules = super()._rules()
        pattern = rules.pop("*.*", {})
        every = {"*.*": {**pattern, **self._of_all.document()}}
        every |= {name: {**pattern, **rule.document()} for name, rule in self._by_name.items()}
        every |= {name: {**rule, **self._rule(name).document()} for name, rule in rules.items()}
        policy = {} if self._asks else {"on_rule_change": "apply"}
        return {name: {**rule, **policy} for name, rule in every.items()}

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        names = {table_id: f"{one.database}.{one.table}" for table_id, one in self.states.items()}
        self._mirrors |= {table_id for table_id, name in names.items() if self._rule(name).mode == "mirror"}
        if chunks and number > 1 and self._turns.random() < 0.3:
            self._change_rules()
        batch = super()._batch if self._asks else partial(Replay._batch, self)
        problems = batch(number, chunks, picture)
        if problems or not self._seqs or self._turns.random() < 0.3:
            return problems
        return [*self._age(self._turns), *([] if picture is None else self._differences(picture))]

    def _days_of(self, name: str) -> int | None:
        return self._rule(name).days

    def _rule(self, name: str) -> Rule:
        return self._by_name.get(name, self._of_all)

    @property
    def _further_reasons(self) -> tuple[str, ...]:
        # others are made of whole rows
        return (*MISFITS, "column_absent") if self.case.style.minimal else MISFITS

    def _unlike_feed(self, lake: pa.Table, columns: Sequence[Shaped], rule: Rule, content: Content) -> list[str]:
        """Return what differs between the stored changes and those that were made."""
        if content.feed is None or rule.null is not None:
            return []
        moves = {"moved from": "", "moved to": "update"} if self._format.updates_move_keys else {}
        words = {"moved from": "delete", "moved to": "insert", **moves}
        feed = [(words.get(op, op), row) for op, row in content.feed if op != "missing"]
        wrong = []
        for op in sorted({*lake["_cdc_op"].to_pylist(), *(op for op, _ in feed)} - {""}):
            stored = lake.filter(pc.equal(lake["_cdc_op"], op))
            made = [row for each, row in feed if each == op]
            if op in ("truncate", "snapshot_begin"):
                wrong += [f"{stored.num_rows} rows {op}, not {len(made)}"] * (stored.num_rows != len(made))
            elif op == "snapshot":  # rows that are sent again look like others
                wrong += [f"{op}: {one}" for one in unlike(stored, columns, made, often=False)]
            else:
                wrong += [f"{op}: {one}" for one in unlike(stored, columns, made)]
            if rule.before:
                own = [column for column in columns if column.name != "computed"]
                rows = stored.select([f"before_{column.name}" for column in own])
                wrong += [f"before {op}: {one}" for one in unlike_before(rows, own, op, content)]
        return wrong

    def _was_mirror(self, name: Name) -> bool:
        return any(
            (self.states[one].database, self.states[one].table) == name for one in self._mirrors & {*self.states}
        )

    def _compare(self, name: Name, content: Content) -> list[str]:
        lake = self._rows(name)
        if lake is None:
            return super()._compare(name, content)
        rule = self._rule(".".join(name))
        if any(op == "snapshot_begin" for op, _ in content.feed or ()) and self._was_mirror(name):
            content = replace(content, feed=None, dead=None)  # it begins with what the mirror began with
        columns = shaped(content.structure, rule.columns)
        metadata = list(rule.columns.get("metadata", {}).values())
        of_mode = OWN_COLUMNS[rule.mode]
        names = [*(column.name for column in columns), *metadata, *of_mode]
        names += [f"before_{column.name}" for column in columns if rule.before and column.name != "computed"]
        if lake.column_names != names:
            return [f"columns {lake.column_names} instead of {names}"]
        wrong, dead = [], None
        if rule.mode == "append":
            return [*wrong, *self._unlike_feed(lake, columns, rule, content)]
        if rule.mode == "soft_delete":
            dead, lake = lake.filter(lake["_cdc_deleted"]), lake.filter(pc.invert(lake["_cdc_deleted"]))
            wrong += ["a row that is there has the time of a delete"] * (lake["_cdc_deleted_at"].null_count < len(lake))
            untimed = self._tool.timed and dead["_cdc_deleted_at"].null_count > 0
            wrong += ["a row that went has no time of its delete"] * untimed
        if rule.mode == "history":
            ended = lake.filter(pc.invert(lake["_cdc_current"]))
            lake = lake.filter(lake["_cdc_current"])
            moved = bool(rule.track) and any(op == "moved to" for op, _ in content.feed or ())  # of which one may go on
            more = [column for column in content.structure.columns if column.name not in content.structure.key]
            moved |= any(_matches(column, name) for column in more for name in rule.track)  # it has such a name now
            if content.feed is not None and content.has_first_key and rule.null is None and not moved:
                there = lasts(content) if rule.track else versions(content, columns)
                wrong += [f"ended: {one}" for one in unlike(ended, columns, without(there, content.rows, columns))]
            wrong += wrong_spans(ended)
        wrong += [
            f"{column.name} is {lake.schema.field(i).type}, not {column.type}"
            for i, column in enumerate(columns)
            if lake.schema.field(i).type != column.type
        ]
        rows = list(content.rows)
        if dead is not None and rule.null is None and content.dead is not None:
            others = unlike(dead, columns, content.dead)
            wrong += [f"dead: {one}" for one in others if not self.aged or not one.startswith("missing")]
        if rule.null is not None:
            read = _named(content.structure, rule.null[0]) or ""
            rows = [row for row in rows if (row[read] is not None) == rule.null[1]]
        wrong += unlike(lake, columns, rows)
        if metadata and lake.num_rows and not {"snapshot", "insert", "update"}.issuperset(lake["_op"].to_pylist()):
            wrong.append(f"operations {set(lake['_op'].to_pylist())}")
        if "_batch" in metadata and not set(lake["_batch"].to_pylist()) <= set(self._seqs):
            wrong.append(f"batches {set(lake['_batch'].to_pylist())}")
        return wrong
