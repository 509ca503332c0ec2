# SPDX-License-Identifier: Apache-2.0
"""Find statements on several topics that the tool's clock cannot order, and the tables that depend on their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.model.clock_position import PARTITION, one_instant, unordered
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

REASON = "apply.order_unknown: statements on several topics are of one instant of the tool's clock"
TWICE = (
    "apply.order_unknown: a statement came twice with one source time, as one that is sent again or carried out twice"
)


@dataclass(frozen=True, slots=True)
class Effect:
    """Hold the tables that a schema change names: those it changes, and those whose structure it copies.

    :param copies: its positions on other partitions.
    """

    position: str
    changed: frozenset[TableName]
    read: frozenset[TableName]
    copies: Sequence[str] = ()


def effect_of(
    change: SchemaChange,
    statements: Sequence[ddl.Statement],
    known: Iterable[TableName],
    folded: Callable[[str], str],
    copies: Sequence[str] = (),
) -> Effect:
    """Return the tables that a schema change names.

    :param known: all tables that ever existed, for statements about a database.
    :param folded: returns a name as the server compares it.
    :param copies: positions of the change on other partitions.
    """
    changed: set[parts.Name] = set()
    read: set[parts.Name] = set()
    whole: set[TableName] = set()
    for item in statements:
        match item:
            case ddl.CreateTable(temporary=False):
                changed.add(item.name)
                read.update([item.like] if item.like is not None else [])
            case ddl.AlterTable():
                changed.add(item.name)
                changed.update(action.name for action in item.actions if isinstance(action, clause.RenameTo))
                others = (action.other for action in item.actions if isinstance(action, clause.PartitionRows))
                changed.update(other for other in others if other is not None)
            case ddl.DropTable(temporary=False):
                changed.update(item.names)
            case ddl.TruncateTable():
                changed.add(item.name)
            case ddl.RenameTable():
                changed.update(name for pair in item.pairs for name in pair)
            case ddl.RestoreTable() if item.name is not None:
                changed.add(item.new_name or item.name)
                read.add(item.name)
            case ddl.RevertRows():
                changed.update(item.names)
            case ddl.DropDatabase() | ddl.RestoreDatabase():
                whole.update(name for name in known if name.database == folded(item.database))
    sets = [
        frozenset(TableName(folded(name.database or change.database), folded(name.table)) for name in names)
        for names in (changed, read)
    ]
    return Effect(change.position, sets[0] | whole, sets[1], copies)


def in_doubt(effect: Effect, before: Collection[Effect]) -> set[TableName]:
    """Return the tables whose state depends on the unknown order of a schema change and some before it."""
    doubtful: set[TableName] = set()
    for other in before:
        if _unordered(effect, other):
            if effect.changed & other.changed:
                doubtful |= effect.changed | other.changed
            if effect.changed & other.read:
                doubtful |= other.changed
            if other.changed & effect.read:
                doubtful |= effect.changed
    return doubtful


def _unordered(later: Effect, earlier: Effect) -> bool:
    """Return whether the order of two changes is unknown; a partition that has both of them orders them."""
    by_partition = {position[PARTITION]: position for position in (earlier.position, *earlier.copies)}
    both = [(by_partition[p[PARTITION]], p) for p in (later.position, *later.copies) if p[PARTITION] in by_partition]
    if not both:
        return unordered(later.position, earlier.position)
    return any(first > second for first, second in both)


def still_near(effects: Iterable[Effect], position: str) -> list[Effect]:
    """Return the schema changes that may be unordered with one at a position."""
    return [effect for effect in effects if one_instant(effect.position, position)]


def creates(statements: Sequence[ddl.Statement], effect: Effect) -> TableName | None:
    """Return the table that a change certainly creates; None for other changes."""
    plain = len(statements) == 1 and len(effect.changed) == 1 and not effect.read
    match statements:
        case (ddl.CreateTable(if_not_exists=False, temporary=False),) if plain:
            return next(iter(effect.changed))
    return None
