# SPDX-License-Identifier: Apache-2.0
"""Random rules for the tables of a capture, and in plain Python what they make of the database's own content."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.histories.moded_table import OWN_COLUMNS
from tests.services.capture import Record

SALT = "a pinch"
_NUMBERS = {"int", "bigint", "smallint", "int2", "int4", "int8"}
_TEXTS = {"varchar", "text"}
_RENAMES = re.compile(rb"RENAME|CHANGE", re.IGNORECASE)


def renamed_columns(records: Iterable[Record]) -> set[str]:
    """Return all words of statements that may rename columns: a rule follows its column, and the content does not."""
    texts = [record.value for record in records if record.value and _RENAMES.search(record.value)]
    return {word.decode() for text in texts for word in re.findall(rb"\w+", text)}


def random_rule(source: Any, spared: Collection[str], mode: str, rnd: random.Random) -> dict[str, Any]:
    """Return a rule for a table of the source, with all kinds of rules for which it has columns.

    :param spared: columns that no rule names.
    """
    kinds = dict(zip(source.columns, source.types, strict=True))
    free = [c for c, kind in kinds.items() if kind in _NUMBERS | _TEXTS and c not in {*spared, *source.key}]
    rnd.shuffle(free)
    columns: dict[str, Any] = {}
    if len(free) > 2:
        columns["exclude"] = [free.pop()]
    if free:
        read = rnd.choice(free)
        columns["add"] = {"computed": f"CASE WHEN `{read}` IS NULL THEN 'none' ELSE 'some' END"}
        masks = ("hash", "redact", "truncate(2)") if kinds[read] in _TEXTS else ("hash", "redact")
        columns["mask"] = {read: rnd.choice(masks)}
        columns["rename"] = {rnd.choice(free): "renamed"}
    rule: dict[str, Any] = {"mode": mode, **({"columns": columns} if columns else {})}
    if free and mode != "append":  # a feed does not show which rows leave
        rule["filter"] = f"`{rnd.choice(free)}` IS {rnd.choice(('', 'NOT '))}NULL"
    return rule


def shaped(source: Any, rule: dict[str, Any]) -> Any:
    """Return the content that a table with a rule must have."""
    rules, rows = rule.get("columns", {}), list(source.rows)
    if "filter" in rule:
        read = source.columns.index(rule["filter"].split("`")[1])
        rows = [row for row in rows if (row[read] is None) == ("NOT" not in rule["filter"])]
    made: list[tuple[str, str, Callable[[Any], str | None]]] = []
    for number, (name, kind) in enumerate(zip(source.columns, source.types, strict=True)):
        if name in rules.get("exclude", ()):
            continue
        mask = rules.get("mask", {}).get(name, "")
        name = rules.get("rename", {}).get(name, name)
        made.append((name, "varchar" if mask == "hash" else kind, _Value(number, kind, mask)))
    for name, text in rules.get("add", {}).items():
        made.append((name, "varchar", _Value(source.columns.index(text.split("`")[1]), "", "some")))
    content = tuple(tuple(value(row) for _, _, value in made) for row in rows)
    names, kinds = tuple(name for name, _, _ in made), tuple(kind for _, kind, _ in made)
    return replace(source, columns=names, types=kinds, rows=content)


class _Value:
    """The text of a column in a row."""

    def __init__(self, number: int, kind: str, mask: str) -> None:
        self._number, self._kind, self._mask = number, kind, mask

    def __call__(self, row: tuple[str | None, ...]) -> str | None:
        text = row[self._number]
        if self._mask == "some":
            return "none" if text is None else "some"
        if self._mask == "redact":
            return "0" if self._kind in _NUMBERS else "***"
        if text is None or not self._mask:
            return text
        return hashlib.sha256(f"{SALT}{text}".encode()).hexdigest() if self._mask == "hash" else text[:2]


def of_source(stored: pa.Table, mode: str, key: tuple[str, ...]) -> pa.Table:
    """Return the rows that the source's table has, without the columns of the mode.

    :param key: of the source, to put a feed of changes together with.
    """
    if mode == "soft_delete":
        stored = stored.filter(pc.invert(stored["_cdc_deleted"]))
    elif mode == "history":
        stored = stored.filter(stored["_cdc_current"])
    elif mode == "append":
        stored = _put_together(stored, key)
    return stored.drop_columns(OWN_COLUMNS[mode])


def _put_together(feed: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Return the rows that are left after the changes of a feed, one after the other.

    An update moves a key where the feed has the rows before it.
    """
    feed = feed.append_column("begins", pc.equal(feed["_cdc_op"], "snapshot_begin"))
    feed = feed.sort_by([("_cdc_position", "ascending"), ("begins", "descending")]).drop_columns("begins")
    left: dict[str, int] = {}
    moves = {f"before_{name}" for name in key} <= set(feed.column_names)
    before, after = ([feed.column(f"{part}{name}").to_pylist() for name in key] for part in ("before_" * moves, ""))
    for number, op in enumerate(feed["_cdc_op"].to_pylist()):
        if op in ("truncate", "snapshot_begin"):
            left.clear()
            continue
        was, mine = (repr([column[number] for column in columns]) for columns in (before, after))
        left.pop(was if op == "update" else mine, None)
        if op != "delete":
            left[mine] = number
    return feed.take(pa.array(sorted(left.values()), pa.int64()))
