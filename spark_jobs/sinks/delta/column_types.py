# SPDX-License-Identifier: Apache-2.0
"""Guard a table's columns: no commit may add rows under other types than the table states."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import Schema

from airflow_provider_cdc.core.errors import REBUILD, SinkError
from airflow_provider_cdc.core.printable import printable


def other_types(stored: Schema, rows: pa.Schema) -> list[str]:
    """Return what sets rows apart from a table's columns, a phrase for each; further columns do not.

    :param stored: the table's columns as its log states them.
    """
    there = {field.name: str(field.type) for field in stored.fields}
    here = {field.name: str(field.type) for field in Schema.from_arrow(rows).fields}
    differing = [name for name, kind in here.items() if there.get(name, kind) != kind]
    phrases = [f"{printable(name)!r} is {there[name]} in the table and {here[name]} here" for name in differing]
    return phrases + [f"{printable(name)!r} is missing here" for name in there if name not in here]


def demand_types(stored: Schema, rows: pa.Schema, location: str) -> None:
    """Demand that rows which are added to a table have its columns.

    :raises SinkError: ``sink.types_differ``.
    """
    phrases = other_types(stored, rows)
    if phrases:
        raise SinkError(
            "sink.types_differ",
            f"the table has other columns than the rows that were to be added: {'; '.join(phrases[:5])}",
            where={"location": location},
            hint=f"nothing was written; {REBUILD}",
        )


def demand_names(names: Sequence[str], location: str) -> None:
    """Refuse columns that a Delta table cannot have together.

    :raises SinkError: a name has a NUL, or two are the same but for their case.
    """
    folded: dict[str, str] = {}
    for name in names:
        other = folded.setdefault(name.lower(), name)
        if other is not name:
            problem = f"the columns {other!r} and {name!r} differ only in case"
        elif "\0" in name:
            problem = f"the name of the column {name!r} has a NUL"
        else:
            continue
        raise SinkError(
            "sink.columns_refused",
            f"{problem}, which no Delta table can have",
            where={"location": location},
            hint="rename the column at the source, or leave the table out with tables.exclude",
        )
