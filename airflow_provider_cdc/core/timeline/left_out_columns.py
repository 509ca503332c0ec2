# SPDX-License-Identifier: Apache-2.0
"""Take the columns that a tool leaves out of its rows out of the tables' timelines, after all statements are applied.

Statements name them, rows do not have them, and the tables never had them: a statement that adds, changes, renames or
drops one is followed by its effect on the names. A rule holds from the name that it is of on, under later names too:
what a schema tool renames away keeps it. A column that comes into the rows by a new name has no known values in older
rows. The same holds for columns that the pipeline keeps out of the change log; those that it redacts stay, without
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from airflow_provider_cdc.core.config import TableRule, TableRules
from airflow_provider_cdc.core.config.table_patterns import is_pattern
from airflow_provider_cdc.core.model.schema import Column, TableName, TableSchema
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaVersion, TableTimeline, Timeline

_RULES = "exclude_columns or columns.unlogged"


def without_left_out(timeline: Timeline, rules: TableRules) -> Timeline:
    """Return a timeline without the columns that are in no row of the change log, as the pipeline says."""
    if not rules.leave_columns_out:
        return timeline
    tables = {table_id: _without(table, rules) for table_id, table in timeline.tables.items()}
    return replace(timeline, tables=tables)


def _without(table: TableTimeline, rules: TableRules) -> TableTimeline:
    stated = {name: rules.rule(name) for _, name in _held(table)}
    patterns = {
        name: [one.lower() for one in (*rule.column_patterns, *rule.unlogged_patterns)] for name, rule in stated.items()
    }
    if not any(patterns.values()):
        return table
    result = replace(table, versions=[], blocked=list(table.blocked))
    result.left_out = sorted({pattern for some in patterns.values() for pattern in some})
    result.blocked += _logged_values(table, stated)
    hidden, constants = set[int](), set[int]()
    for version, until_now in _spans(table):
        those = [pattern for name in until_now for pattern in patterns[name]]
        absent = {c for c in version.schema.columns if any(fnmatchcase(c.name.lower(), one) for one in those)}
        constants |= {c.id for c in absent if any(_redacts(stated[name], c) for name in until_now)}
        redacted = {c.id for c in absent} & constants
        gone = {c.id for c in absent} - redacted
        shown = _stripped(version, gone, redacted)
        in_rows = {column.id for column in shown.schema.columns_in_rows}
        result.blocked += _blocks(version, gone | redacted, in_rows, hidden & in_rows)
        hidden |= gone | redacted
        if not result.versions or shown.schema != result.versions[-1].schema or shown.computed:
            result.versions.append(shown)
    hidden_fills = hidden - {column.id for version in result.versions for column in version.schema.columns}
    result.fills = {column: fill for column, fill in table.fills.items() if column not in hidden_fills}
    for reference in table.references:
        if hidden & set(reference.columns):
            text = f"a foreign key over a column that is in no row ({_RULES}) changes rows without row events"
            result.blocked.append(Block(reference.position, text, columns=True))
    result.references = [one for one in table.references if not hidden & set(one.columns)]
    mine = [block._replace(by_rule=block not in table.blocked) for block in result.blocked]
    result.blocked = sorted(mine, key=lambda block: block.position)
    return result


def _spans(table: TableTimeline) -> list[tuple[SchemaVersion, set[TableName]]]:
    """Return the versions, each with all names so far, and once more from each position where a name came."""
    spans = []
    for position in sorted({*(version.position for version in table.versions), *(since for since, _ in table.names)}):
        version = table.versions[table.version_at(position)]
        at = version if version.position == position else replace(version, position=position, computed=())
        spans.append((at, {name for since, name in _held(table) if since <= position}))
    first = table.versions[0].position
    return [(version, names or {table.last_name}) for version, names in spans if version.position >= first]


def _logged_values(table: TableTimeline, rules: Mapping[TableName, TableRule]) -> Iterator[Block]:
    """Yield what shows that values came into the change log which a rule keeps out under another name.

    :param rules: of each name that the table has had.
    """
    unlogged = set[int]()
    named = list[tuple[str, TableName, Column]]()
    for version, until_now in _spans(table):
        named += [(version.position, _name_at(table, version.position), one) for one in version.schema.columns]
        unlogged |= {one.id for one in version.schema.columns if any(_unlogs(rules[name], one) for name in until_now)}
    for position, name, column in named:
        if column.id in unlogged and not _unlogs(rules[name], column):
            text = f"values of {column.name} came into the change log under the name {name}"
            yield Block(position, f"{text}: state columns.unlogged for this name too", columns=True)
    for name, rule in rules.items():
        had = {column.name.lower() for version in table.versions for column in version.schema.columns}
        unknown = [one for one in rule.unlogged_patterns if not is_pattern(one) and one.lower() not in had]
        if unknown and name == table.last_name:
            text = f"columns.unlogged names {', '.join(unknown)}, which the table neither has nor had"
            text += "; of one that is to come state a pattern"
            yield Block(table.versions[0].position, text, columns=True)


def _name_at(table: TableTimeline, position: str) -> TableName:
    """Return the name that a table has at a position, its first one before that."""
    names = _held(table)
    return next((name for since, name in reversed(names) if since <= position), names[0][1])


def _held(table: TableTimeline) -> list[tuple[str, TableName]]:
    """Return the names that the table has had between statements, with their positions: no row has another."""
    names = [(since, name) for since, name in table.names if name is not None]
    return [one for one, after in zip(names, [*names[1:], None], strict=True) if after is None or after[0] > one[0]]


def _unlogs(rule: TableRule, column: Column) -> bool:
    return any(fnmatchcase(column.name.lower(), one.lower()) for one in rule.unlogged_patterns)


def _redacts(rule: TableRule, column: Column) -> bool:
    """Return whether a column that stays out of the change log is a constant in the table."""
    return _unlogs(rule, column) and rule.columns is not None and rule.columns.redacts(column.name)


def _stripped(version: SchemaVersion, gone: set[int], redacted: set[int]) -> SchemaVersion:
    """Return a version without some columns.

    :param redacted: columns that stay, and that rows have no values of.
    """
    schema = version.schema
    columns = tuple(
        column.only_in_target() if column.id in redacted else column
        for column in schema.columns
        if column.id not in gone
    )
    computed = tuple(one for one in version.computed if one.column_id not in gone | redacted)
    key = tuple(i for i in schema.key if i not in gone)
    return replace(version, schema=TableSchema(columns, key), computed=computed)


def _blocks(version: SchemaVersion, gone: set[int], in_rows: set[int], returned: set[int]) -> list[Block]:
    """Return why a table cannot be followed without some columns.

    :param in_rows: columns that rows have.
    :param returned: columns that are in the rows and were not before: their older values are in no log.
    """
    blocks = []
    named = {column.id: column.name for column in version.schema.columns}
    if keys := [named[i] for i in version.schema.key if i in gone]:
        text = f"the key has the column {', '.join(keys)}, which is in no row ({_RULES})"
        blocks.append(Block(version.position, text, columns=True))
    if not in_rows:
        blocks.append(Block(version.position, f"{_RULES} names all of its columns", columns=True))
    for one in version.computed:
        if one.column_id not in gone and one.formula.columns & gone:
            text = f"the generated column {named[one.column_id]} is computed from one that is in no row ({_RULES})"
            blocks.append(Block(version.position, text))
    if returned:
        text = (
            f"rows have the column {', '.join(named[i] for i in sorted(returned))} from here on, and none had it before"
        )
        blocks.append(Block(version.position, text))
    return blocks
