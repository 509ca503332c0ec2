# SPDX-License-Identifier: Apache-2.0
"""Take the columns that a tool leaves out of its rows out of the tables' timelines, after all statements are applied.

Statements name them, rows do not have them, and the tables never had them: a statement that adds, changes, renames or
drops one is followed by its effect on the names. A rule holds from the name that it is of on, under later names too:
what a schema tool renames away keeps it. A column that comes into the rows by a new name has no known values in older
rows.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from airflow_provider_cdc.core.config import TableRules
from airflow_provider_cdc.core.model.schema import TableName, TableSchema
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaVersion, TableTimeline, Timeline


def without_left_out(timeline: Timeline, rules: TableRules) -> Timeline:
    """Return a timeline without the columns that the pipeline says are in no row (``exclude_columns``)."""
    if not rules.leave_columns_out:
        return timeline
    tables = {table_id: _without(table, rules) for table_id, table in timeline.tables.items()}
    return replace(timeline, tables=tables)


def _without(table: TableTimeline, rules: TableRules) -> TableTimeline:
    names = [name for _, name in table.names if name is not None]
    patterns = {name: [one.lower() for one in rules.rule(name).column_patterns] for name in names}
    if not any(patterns.values()):
        return table
    result = replace(table, versions=[], blocked=list(table.blocked))
    result.left_out = sorted({pattern for some in patterns.values() for pattern in some})
    hidden: set[int] = set()
    for version, until_now in _spans(table):
        stated = [pattern for name in until_now for pattern in patterns[name]]
        gone = {c.id for c in version.schema.columns if any(fnmatchcase(c.name.lower(), one) for one in stated)}
        shown = _stripped(version, gone)
        result.blocked += _blocks(version, gone, hidden & {column.id for column in shown.schema.columns})
        hidden |= gone
        if not result.versions or shown.schema != result.versions[-1].schema or shown.computed:
            result.versions.append(shown)
    hidden_fills = hidden - {column.id for version in result.versions for column in version.schema.columns}
    result.fills = {column: fill for column, fill in table.fills.items() if column not in hidden_fills}
    for reference in table.references:
        if hidden & set(reference.columns):
            text = "a foreign key over a column that exclude_columns names changes rows without row events"
            result.blocked.append(Block(reference.position, text, columns=True))
    result.references = [one for one in table.references if not hidden & set(one.columns)]
    result.blocked.sort(key=lambda block: block.position)
    return result


def _spans(table: TableTimeline) -> list[tuple[SchemaVersion, set[TableName]]]:
    """Return the versions, each with all names so far, and once more from each position where a name came."""
    spans = []
    for position in sorted({*(version.position for version in table.versions), *(since for since, _ in table.names)}):
        version = table.versions[table.version_at(position)]
        at = version if version.position == position else replace(version, position=position, computed=())
        spans.append((at, {name for since, name in table.names if since <= position and name is not None}))
    first = table.versions[0].position
    return [(version, names or {table.last_name}) for version, names in spans if version.position >= first]


def _stripped(version: SchemaVersion, gone: set[int]) -> SchemaVersion:
    schema = version.schema
    columns = tuple(column for column in schema.columns if column.id not in gone)
    computed = tuple(one for one in version.computed if one.column_id not in gone)
    return replace(
        version, schema=TableSchema(columns, tuple(i for i in schema.key if i not in gone)), computed=computed
    )


def _blocks(version: SchemaVersion, gone: set[int], returned: set[int]) -> list[Block]:
    """Return why a table cannot be followed without some columns.

    :param returned: columns that are in the rows and were not before: their older values are in no log.
    """
    blocks = []
    named = {column.id: column.name for column in version.schema.columns}
    if keys := [named[i] for i in version.schema.key if i in gone]:
        text = f"the key has the column {', '.join(keys)}, which exclude_columns says is in no row"
        blocks.append(Block(version.position, text, columns=True))
    if gone.issuperset(named):
        blocks.append(Block(version.position, "exclude_columns names all of its columns", columns=True))
    for one in version.computed:
        if one.column_id not in gone and one.formula.columns & gone:
            text = f"the generated column {named[one.column_id]} is computed from one that exclude_columns names"
            blocks.append(Block(version.position, text))
    if returned:
        text = (
            f"rows have the column {', '.join(named[i] for i in sorted(returned))} from here on, and none had it before"
        )
        blocks.append(Block(version.position, text))
    return blocks
