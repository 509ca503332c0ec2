# SPDX-License-Identifier: Apache-2.0
"""Compare the rules of a table with those that its rows were made with: columns, filter, mode, and the salt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_cdc.core.config.column_rules import ColumnRules
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.laid_columns import LaidColumn, LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.shape import Shape
from airflow_provider_cdc.core.values.types import TypeOptions

COLUMNS, FILTER, MODE = "columns", "filter", "mode"
"""Keys of the rules below ``tables.<name>``, and in what a state says that its rows were made with."""

SALT = "mask_connection"
_NONE = "none"
_TEXTS = {"add": ("an expression", "another expression")}  # may name values
_CONDITIONS = ("a condition", "another condition")
_WITHOUT_MODE = "mirror"


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The rules of a table are others than those that its rows were made with.

    :param options: keys of those that differ.
    :param changes: of each rule what it was and is, without an expression: that may name a value.
    :param still_shown: what older versions of the table show and the table no longer does.
    :param kept_out: patterns of columns whose values the change log has from before, and no more.
    :param lacking: patterns of columns whose values it lacks from before.
    :param from_rows: whether the stored rows have all that the new columns are made of.
    :param mark: identifies the change, for the rows that the table has.
    """

    options: tuple[str, ...]
    changes: tuple[str, ...]
    still_shown: tuple[str, ...]
    from_rows: bool
    mark: str
    kept_out: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def concerns_rules(self) -> bool:
        """Return whether a rule that the pipeline states is another one, and not the salt alone."""
        return self.options != (SALT,)


def rule_change(state: TableState, now: Mapping[str, str], shape: Shape, options: TypeOptions) -> RuleChange | None:
    """Return how the rules of a table differ, None where its rows are as the rules of now would make them.

    :param state: of the table; ``made_with`` has the rules that its rows were made with.
    :param now: the rules of now in the same form.
    :param shape: that they give the table.
    """
    was = state.made_with
    if was is None or state.schema is None:
        return None
    stated = [name for name in (COLUMNS, FILTER, MODE) if was.get(name) != now.get(name)]
    schema = TableSchema.from_document(state.schema)
    old, new = LaidColumns.from_document(state.laid).of(schema), _laid(shape, schema, options)
    salts = _new_salts(old, new)
    if stated == [COLUMNS] and new == old:
        return None  # of rules that say the same of this table
    if not stated and not salts:
        return None
    changes = [*_column_changes(_rules(was), _rules(now)), *_other_changes(was, now)]
    if not stated:
        changes = [f"{SALT}: another salt"]
    made = {name: (was.get(name), now.get(name)) for name in stated}
    text = json.dumps([state.applied_seq, made, salts], sort_keys=True)
    mark = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    shown, from_rows = tuple(_still_shown(old, new, was, now)), stated == [COLUMNS] and _are_stored(old, new)
    before, after = (set(_rules(rules)["unlogged"]) for rules in (was, now))
    out, lacking = tuple(sorted(after - before)), tuple(sorted(before - after))
    return RuleChange(tuple(stated) or (SALT,), tuple(changes), shown, from_rows, mark, out, lacking)


def _laid(shape: Shape, schema: TableSchema, options: TypeOptions) -> tuple[LaidColumn, ...]:
    """Return the columns under a schema, none where the rules do not fit it."""
    try:
        return shape.laid(schema, options).of(schema)
    except DataError:
        return ()


def _are_stored(old: Sequence[LaidColumn], new: Sequence[LaidColumn]) -> bool:
    """Return whether rows have what columns are made of: these themselves, or the own values of the source's.

    An expression over stored columns is left out: of a row on which it fails the change log has to be read.
    """
    had = {(one.id, one.mark) for one in old}
    return bool(new) and all((one.id, one.mark) in had or (one.id >= 0 and (one.id, "") in had) for one in new)


def _new_salts(old: Sequence[LaidColumn], new: Sequence[LaidColumn]) -> list[str]:
    """Return what tells the salts apart of columns that have hashes with another one."""
    had = {one.id: one.salt for one in old if one.salt}
    return sorted({one.salt for one in new if one.salt and had.get(one.id, one.salt) != one.salt})


def _rules(made_with: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the rules for columns, each as a mapping."""
    rules = ColumnRules(**json.loads(made_with.get(COLUMNS, "{}")))
    stated = rules.document()
    unlogged = dict.fromkeys(rules.unlogged_patterns, "kept out of the change log")
    return {**stated, "exclude": dict.fromkeys(rules.excluded, "left out"), "unlogged": unlogged}


def _column_changes(was: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> list[str]:
    changes = []
    for rule in dict.fromkeys((*was, *now)):
        before, after = was.get(rule, {}), now.get(rule, {})
        for name in dict.fromkeys((*before, *after)):
            if before.get(name) != after.get(name):
                first, other = _said(before.get(name), after.get(name), _TEXTS.get(rule))
                changes.append(f"{rule} of {name}: {first} -> {other}")
    return changes


def _other_changes(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    changes = []
    if was.get(FILTER) != now.get(FILTER):
        changes.append("filter: {} -> {}".format(*_said(was.get(FILTER), now.get(FILTER), _CONDITIONS)))
    if was.get(MODE) != now.get(MODE):
        changes.append(f"mode: {was.get(MODE, _WITHOUT_MODE)} -> {now.get(MODE, _WITHOUT_MODE)}")
    return changes


def _said(was: str | None, now: str | None, words: tuple[str, str] | None) -> tuple[str, str]:
    """Return the words for what a rule was and is.

    :param words: in place of its text: for the first of two, and for another one.
    """
    if words is None:
        return was or _NONE, now or _NONE
    first, other = words
    return (first if was else _NONE), (_NONE if not now else other if was else first)


def _still_shown(
    old: Sequence[LaidColumn], new: Sequence[LaidColumn], was: Mapping[str, str], now: Mapping[str, str]
) -> list[str]:
    """Return what the table had and will not have."""
    after = {one.id: one for one in new}
    changed = [(one, after.get(one.id)) for one in old if after.get(one.id) != one]
    gone = [one.name for one, then in changed if then is None or (then.is_masked and then.mark != one.mark)]
    if now.get(FILTER) and was.get(FILTER) != now.get(FILTER):
        gone.append("rows that do not pass the filter")
    if was.get(MODE, _WITHOUT_MODE) != _WITHOUT_MODE and was.get(MODE) != now.get(MODE):
        gone.append("rows and versions that the source does not have")
    return gone
