# SPDX-License-Identifier: Apache-2.0
"""Say of a clause of ALTER TABLE whether it does something, which column it names, and who decides about it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_COLUMN, ON_RENAME_COLUMN


def skipped(action: clause.AlterAction, schema: TableSchema) -> bool:
    """Return whether IF EXISTS or IF NOT EXISTS makes the clause do nothing."""
    match action:
        case clause.AddColumn(if_not_exists=True):
            return schema.named(action.definition.name) is not None
        case clause.DropColumn(if_exists=True):
            return schema.named(action.name) is None
        case clause.ChangeColumn(if_exists=True):
            return schema.named(action.old_name) is None
    return False


def policies_of(actions: Sequence[clause.AlterAction]) -> list[str]:
    """Return the policies that decide about clauses of a statement."""
    drops = any(isinstance(action, clause.DropColumn) for action in actions)
    renames = any(map(renamed, actions))
    return [*([ON_DROP_COLUMN] if drops else []), *([ON_RENAME_COLUMN] if renames else [])]


def renamed(action: clause.AlterAction) -> tuple[str, str] | None:
    """Return the old and the new name of a column that a clause renames, None of others; case does not count."""
    match action:
        case clause.RenameColumn():
            names = action.old_name, action.new_name
        case clause.ChangeColumn():
            names = action.old_name, action.definition.name
        case _:
            return None
    return names if names[0].lower() != names[1].lower() else None


def given_name(action: clause.AlterAction) -> str:
    """Return the name that a clause gives to a column, empty for other clauses."""
    match action:
        case clause.AddColumn() | clause.ChangeColumn():
            return action.definition.name
        case clause.RenameColumn():
            return action.new_name
    return ""
