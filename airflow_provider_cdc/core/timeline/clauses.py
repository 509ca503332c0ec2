# SPDX-License-Identifier: Apache-2.0
"""Say of a clause of ALTER TABLE whether it does something, which column it names, and who decides about it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_COLUMN, ON_RENAME_COLUMN


def skipped(action: ddl.AlterAction, schema: TableSchema) -> bool:
    """Return whether IF EXISTS or IF NOT EXISTS makes the clause do nothing."""
    match action:
        case ddl.AddColumn(if_not_exists=True):
            return schema.named(action.definition.name) is not None
        case ddl.DropColumn(if_exists=True):
            return schema.named(action.name) is None
        case ddl.ChangeColumn(if_exists=True):
            return schema.named(action.old_name) is None
    return False


def policies_of(actions: Sequence[ddl.AlterAction]) -> list[str]:
    """Return the policies that decide about clauses of a statement."""
    drops = any(isinstance(action, ddl.DropColumn) for action in actions)
    renames = any(map(renamed, actions))
    return [*([ON_DROP_COLUMN] if drops else []), *([ON_RENAME_COLUMN] if renames else [])]


def renamed(action: ddl.AlterAction) -> tuple[str, str] | None:
    """Return the old and the new name of a column that a clause renames, None of others; case does not count."""
    match action:
        case ddl.RenameColumn():
            names = action.old_name, action.new_name
        case ddl.ChangeColumn():
            names = action.old_name, action.definition.name
        case _:
            return None
    return names if names[0].lower() != names[1].lower() else None


def given_name(action: ddl.AlterAction) -> str:
    """Return the name that a clause gives to a column, empty for other clauses."""
    match action:
        case ddl.AddColumn() | ddl.ChangeColumn():
            return action.definition.name
        case ddl.RenameColumn():
            return action.new_name
    return ""
