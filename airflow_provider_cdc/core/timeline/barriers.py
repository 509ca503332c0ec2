# SPDX-License-Identifier: Apache-2.0
"""Find barriers: schema versions whose rows cannot be resolved together with the rows before.

Older rows are resolved under the old schema first, because the change of schema altered the key or stored values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion
from airflow_provider_cdc.core.values.alter.to_text import keeps_bytes, keeps_texts
from airflow_provider_cdc.core.values.alter.type_families import family

Rule = Callable[[ColumnType, ColumnType], bool]

_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_VARYING_BYTES = frozenset({"varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


def keeps_values(old: ColumnType, new: ColumnType) -> bool:
    """Return whether a type change leaves every stored value as it is, so that it needs no barrier."""
    if old == new:
        return True
    rule = _RULES.get(family(old))
    return rule is not None and family(old) == family(new) and rule(old, new)


def _integers(old: ColumnType, new: ColumnType) -> bool:
    if old.unsigned == new.unsigned:
        return _BYTES[new.name] >= _BYTES[old.name]
    return old.unsigned and _BYTES[new.name] > _BYTES[old.name]


def _decimals(old: ColumnType, new: ColumnType) -> bool:
    scale = (new.scale or 0) - (old.scale or 0)
    return scale >= 0 and (new.length or 0) - (old.length or 0) >= scale and (old.unsigned or not new.unsigned)


def _floats(old: ColumnType, new: ColumnType) -> bool:
    return new.scale is None and (old.name == "float" or new.name == "double")


def _fractions(old: ColumnType, new: ColumnType) -> bool:
    return (new.length or 0) >= (old.length or 0)


def _enums(old: ColumnType, new: ColumnType) -> bool:
    return set(old.labels) <= set(new.labels)


def _sets(old: ColumnType, new: ColumnType) -> bool:
    # a SET's text names its members in the type's order
    return tuple(label for label in new.labels if label in old.labels) == old.labels


def _bytes(old: ColumnType, new: ColumnType) -> bool:
    return {old.name, new.name} <= _VARYING_BYTES and keeps_bytes(old, new)


# by family of types; a change of any other family, or between families, is a barrier
_RULES: dict[str, Rule] = {
    "integer": _integers,
    "decimal": _decimals,
    "float": _floats,
    "datetime": _fractions,
    "timestamp": _fractions,
    "time": _fractions,
    "enum": _enums,
    "set": _sets,
    "text": keeps_texts,
    "bytes": _bytes,
}


def barriers(versions: Sequence[SchemaVersion], made_of: Collection[int] = ()) -> list[int]:
    """Return the indexes of the schema versions that are barriers: the key, or stored values, changed.

    :param made_of: ids of columns that a stored table of rows with a key does not have as they are, but which others
        are made of. Where one of them changes there is no barrier: each row is converted before anything is made of it.
    """
    indexes = []
    for index in range(1, len(versions)):
        old, new = versions[index - 1].schema, versions[index].schema
        changed = {
            column.id
            for column in new.columns
            if (was := old.column(column.id)) is not None
            and (not keeps_values(was.type, column.type) or (was.nullable and not column.nullable))
        }
        changed |= {item.column_id for item in versions[index].computed}
        of_key = old.key != new.key or not changed.isdisjoint(new.key)
        if of_key or (changed and changed.isdisjoint(made_of)):
            indexes.append(index)
    return indexes
