# SPDX-License-Identifier: Apache-2.0
"""Compare the options that a table's rows were made with and those of now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase

from airflow_provider_cdc.core.apply.changed_rules import COLUMNS, FILTER, MODE, RuleChange, rule_change
from airflow_provider_cdc.core.apply.modes import mode_of
from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.config.option_kinds import POLICIES, OptionKind, kind_of_option
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import CdcError, DataError
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column
from airflow_provider_cdc.core.shapes.mode import ModeColumns
from airflow_provider_cdc.core.shapes.shape import Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

MadeWith = Mapping[str, str]
"""Text of each option that tables are made with and that differs from its default, by its key in the YAML file."""

_OPTION, _POLICY = "source.options.", "policy."
_FORMAT, _ORDER, _CREATE, _EXCLUDED = "source.format", "order", "create", "exclude_columns"
_NULL_IN_BOTH = f"{_OPTION}null_in_both"
_SERVER = f"{_OPTION}server"
_OF_DEFAULTS = (f"{_OPTION}explicit_defaults_for_timestamp", f"{_OPTION}session_time_zone")
_DEFAULTS = {item.name: str(item.default) for item in fields(RunPolicy)}
_LAYOUT_POLICIES = [name for name, kind in POLICIES.items() if kind == OptionKind.LAYOUT]
_STORED = (OptionKind.LAYOUT, OptionKind.READING, OptionKind.LOG)


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """An option that a table's rows were made with is another one now.

    :param option: its key.
    :param was: its text then, empty for its default; ``now`` its text now.
    :param columns: names of the columns whose values would be others.
    :param from_rows: whether the stored rows have all that new ones are made of.
    """

    kind: OptionKind
    option: str
    was: str
    now: str
    columns: tuple[str, ...] = ()
    from_rows: bool = False

    def error(self, table: str) -> DataError:
        """Return why a table is parked until it is made again, or the option is taken back."""
        was, now = self.was or "its default", self.now or "its default"
        text = f"{self.option} was {was} when the rows were made, it is {now} now"
        if self.columns:
            text += f": of {', '.join(self.columns)} old and new values would not go together"
        hint = (
            f"take it back; or `airflow-cdc rebuild PIPELINE.yaml {table}`: all rows are made again from the change log"
        )
        hint += " as it is now, also those that the tool wrote before"
        if self.kind == OptionKind.LOG:
            hint = "take it back; or read the source from its beginning under another pipeline name and root"
        return DataError("apply.made_otherwise", text, where={"table": table}, hint=hint)


def _rules_for(rules: TableRules, table: object) -> dict[str, str]:
    """Return what rules say of the columns and rows of a table."""
    rule, made = rules.rule(table), dict[str, str]()
    if rule.columns is not None:
        made[COLUMNS] = json.dumps(rule.columns.document(), sort_keys=True)
    if rule.filter is not None:
        made[FILTER] = rule.filter
    if rule.made_by_mode:
        made[MODE] = rule.made_by_mode
    return made


def is_made_by(rules: TableRules, table: object, was: MadeWith | None) -> bool:
    """Return whether the rows of a table were made by its rules as they are now."""
    made = {key: text for key, text in (was or {}).items() if key in (COLUMNS, FILTER, MODE)}
    return made == _rules_for(rules, table)


class StoredLayouts:
    """The options of a pipeline as its tables are made with them.

    :param options: of the format.
    :param salt: of hashes.
    """

    def __init__(
        self, rules: TableRules, policy: RunPolicy, name: str, options: Mapping[str, str], salt: bytes = b""
    ) -> None:
        self._rules, self._policy, self._options, self._salt = rules, policy, dict(options), salt
        self._format = open_format(name, options)
        self._formats: dict[tuple[tuple[str, str], ...], Format | None] = {}
        stated = {f"{_OPTION}{key}": value for key, value in options.items() if kind_of_option(key) in _STORED}
        self._source = {**stated, _FORMAT: name, _ORDER: self._format.order}

    def of(self, timeline: TableTimeline) -> dict[str, str]:
        """Return what a table is made with now."""
        policy = self._rules.policy(timeline.last_name, self._policy)
        values = {name: str(getattr(policy, name)) for name in _LAYOUT_POLICIES}
        made = {f"{_POLICY}{name}": value for name, value in values.items() if value != _DEFAULTS[name]}
        if timeline.left_out:
            made[_EXCLUDED] = "\n".join(timeline.left_out)
        first = next(name for _, name in timeline.names if name is not None)
        create = self._rules.rule(first).create if timeline.versions[0].position == "" else None
        if create is not None:  # statements that a pipeline states stand before every position
            made[_CREATE] = hashlib.blake2b(" ".join(create.split()).encode(), digest_size=8).hexdigest()
        return {**self._source, **made, **_rules_for(self._rules, timeline.last_name)}

    def leaves_out_alike(self, timeline: TableTimeline, state: TableState) -> bool:
        """Return whether the rows of a table were made without the same columns."""
        return (state.made_with or {}).get(_EXCLUDED) == self.of(timeline).get(_EXCLUDED)

    def change(self, timeline: TableTimeline, state: TableState) -> LayoutChange | None:
        """Return what is another option now and concerns a table, None where its rows are as they would be made now.

        :param state: of the table.
        """
        was, now = state.made_with, self.of(timeline)
        if was is None or was == now:
            return None
        changes = [self._log_change(was, now), self._reading_change(timeline, was, now)]
        changes += [self._type_change(timeline, was, now), self._structure_change(timeline, was, now)]
        changes += [self._shape_change(timeline, state)]
        return next((change for change in changes if change is not None), None)

    def rule_change(self, timeline: TableTimeline, state: TableState) -> RuleChange | None:
        """Return how the rules of a table differ from those that its rows were made with, None where they do not."""
        name = timeline.last_name
        if state.laid is None and is_made_by(self._rules, name, state.made_with):
            return None  # as most tables
        types = TypeOptions.of(self._rules.policy(name, self._policy))
        return rule_change(state, _rules_for(self._rules, name), self.shape(timeline), types)

    def shape(self, timeline: TableTimeline) -> Shape:
        """Return the columns that a table gets."""
        name = timeline.last_name
        rule = self._rules.rule(name)
        return Shape.of(rule.columns, rule.filter, timeline, self._salt, self.mode(timeline))

    def mode(self, timeline: TableTimeline) -> ModeColumns:
        """Return the mode that a table gets."""
        return mode_of(self._rules, timeline.last_name)

    def _shape_change(self, timeline: TableTimeline, state: TableState) -> LayoutChange | None:
        change = self.rule_change(timeline, state)
        if change is None or not change.concerns_rules:
            return None  # another salt counts with the next change of the table
        option = f"tables.{timeline.last_name}.{change.options[0]}"
        return LayoutChange(OptionKind.LAYOUT, option, "another one", "the present one", from_rows=change.from_rows)

    def _log_change(self, was: MadeWith, now: MadeWith) -> LayoutChange | None:
        for option in (_FORMAT, _ORDER, _NULL_IN_BOTH):
            default = "null" if option == _NULL_IN_BOTH else ""
            texts = was.get(option, default), now.get(option, default)
            if texts[0] != texts[1]:
                key = f"{_OPTION}sequenceEnabled" if option == _ORDER else option
                return LayoutChange(OptionKind.LOG, key, *texts)
        return None

    def _reading_change(self, timeline: TableTimeline, was: MadeWith, now: MadeWith) -> LayoutChange | None:
        names = [name for name in (*was, *now) if kind_of_option(name.removeprefix(_OPTION)) == OptionKind.READING]
        option = next((name for name in sorted(set(names)) if was.get(name) != now.get(name)), None)
        if option is None:
            return None
        before = self._opened(was)
        columns = _columns(timeline, lambda column: before is None or not _reads_alike(before, self._format, column))
        if not columns:
            return None
        return LayoutChange(OptionKind.READING, option, was.get(option, ""), now.get(option, ""), columns)

    def _opened(self, was: MadeWith) -> Format | None:
        """Return the format with the options of then, None where it does not take them any more."""
        others = {key: value for key, value in self._options.items() if kind_of_option(key) not in _STORED}
        stated = {name.removeprefix(_OPTION): text for name, text in was.items() if name.startswith(_OPTION)}
        options = {**others, **stated}
        key = tuple(sorted(options.items()))
        if key not in self._formats:
            try:
                self._formats[key] = open_format(self._source[_FORMAT], options)
            except CdcError:
                self._formats[key] = None
        return self._formats[key]

    @staticmethod
    def _type_change(timeline: TableTimeline, was: MadeWith, now: MadeWith) -> LayoutChange | None:
        before, after = _types(was), _types(now)
        columns = _columns(timeline, lambda column: arrow_type(column.type, before) != arrow_type(column.type, after))
        if not columns:
            return None
        names = [f"{_POLICY}{name}" for name in _LAYOUT_POLICIES]
        option = next(name for name in names if was.get(name) != now.get(name))
        return LayoutChange(OptionKind.LAYOUT, option, was.get(option, ""), now.get(option, ""), columns)

    @staticmethod
    def _structure_change(timeline: TableTimeline, was: MadeWith, now: MadeWith) -> LayoutChange | None:
        if was.get(_CREATE) != now.get(_CREATE):
            return LayoutChange(
                OptionKind.LAYOUT, f"tables.{timeline.last_name}.create", "another one", "the present one"
            )
        excluded = [pattern for pattern in was.get(_EXCLUDED, "").split("\n") if pattern]
        columns = _columns(timeline, lambda c: any(fnmatchcase(c.name.lower(), pattern) for pattern in excluded))
        if columns:  # they are in the rows after all; columns that go are left out of what is stored
            option = f"tables.{timeline.last_name}.{_EXCLUDED}"
            return LayoutChange(OptionKind.LAYOUT, option, was[_EXCLUDED], now.get(_EXCLUDED, ""), columns)
        for option in _OF_DEFAULTS:
            texts = was.get(option, ""), now.get(option, "")
            columns = _columns(timeline, lambda column: column.type.name == "timestamp")
            if texts[0] not in ("", texts[1]) and columns:  # without it no value was made that depends on it
                return LayoutChange(OptionKind.LAYOUT, option, *texts, columns)
        if was.get(_SERVER) != now.get(_SERVER) and len(timeline.versions) > 1:
            return LayoutChange(OptionKind.LAYOUT, _SERVER, was.get(_SERVER, ""), now.get(_SERVER, ""))
        return None


def _columns(timeline: TableTimeline, concerns: Callable[[Column], bool]) -> tuple[str, ...]:
    """Return the names of the columns, of all schema versions, that something concerns."""
    every = {column: None for version in timeline.versions for column in version.schema.columns}
    return tuple(dict.fromkeys(column.name for column in every if concerns(column)))


def _types(made: MadeWith) -> TypeOptions:
    flags, dates = made.get(f"{_POLICY}tinyint1_as_boolean", "False"), made.get(f"{_POLICY}zero_dates", "null")
    return TypeOptions(flags == "True", "text" if dates == "text" else "null")


def _reads_alike(before: Format, after: Format, column: Column) -> bool:
    """Return whether two sets of options read a column's values in one way, or the first refused them."""
    was, now = _encoding(before, column), _encoding(after, column)
    if was is None or was == now:
        return True
    # values that state their offset themselves are the same instants in any zone; others were refused
    return now is not None and was.encoding == Encoding.ZONED_TEXT and now.encoding == Encoding.TEXT


def _encoding(fmt: Format, column: Column) -> Encoded | None:
    """Return how a column stands in records that do not describe it, None where the format refuses it."""
    try:
        encoded = fmt.encoding_of(column.name, column.type, None)
    except DataError:
        return None
    return replace(encoded, zone=encoded.zone or "UTC")
