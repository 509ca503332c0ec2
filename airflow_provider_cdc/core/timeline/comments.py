# SPDX-License-Identifier: Apache-2.0
"""Hold what a source says of a table and of its columns: text for people, which is stored and never read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from airflow_provider_cdc.core.model.schema import Column

LONGEST = 4096
"""Characters of a comment that are kept. Servers of the MySQL family take 1024 for a column and 2048 for a table."""

_TABLE = ""


class Comments:
    """The comments of one table while statements change it.

    :param said: lower-case names of columns that had a comment, of all tables that had the name, and an empty one for
        the table: where a comment goes, or another table takes the name, there is none any more. What others wrote
        at a column of which the source never said anything stays.
    """

    def __init__(self, said: set[str] | None = None) -> None:
        self.said: set[str] = set() if said is None else said
        self._table = ""
        self._columns: dict[int, str] = {}

    def of_table(self, text: str) -> None:
        """Take the table's comment, empty for none."""
        self._table = _bounded(text)
        self.said |= {_TABLE} if text else set()

    def of_column(self, column_id: int, name: str, text: str) -> None:
        """Take a column's comment, empty for none."""
        self.said |= {name.lower()} if text or self._columns.get(column_id) else set()
        self._columns[column_id] = _bounded(text)

    def share(self, column_id: int, other: int) -> None:
        """Give the comment of a column to another one, too."""
        self._columns[other] = self._columns.get(column_id, "")

    def copy(self) -> Comments:
        """Return a copy, with the same memory of names."""
        return self.taken_by({column_id: column_id for column_id in self._columns}, self.said)

    def taken_by(self, ids: Mapping[int, int], said: set[str]) -> Comments:
        """Return them for another table.

        :param ids: its columns by the ids of this one's.
        :param said: names of before at the other table, to which those of this one come.
        """
        other = Comments(said)
        said |= self.said
        other._table = self._table
        other._columns = {ids[one]: text for one, text in self._columns.items() if one in ids}
        return other

    def take_name(self, said: set[str]) -> set[str]:
        """Take the names of before at a name that the table has now; return all."""
        self.said |= said
        return self.said

    def note(self, columns: Collection[Column]) -> tuple[str | None, dict[int, str]]:
        """Return the comment of the table and those of its columns; empty where there was one."""
        noted = {column.id: self._columns.get(column.id, "") for column in columns}
        known = {column.id for column in columns if noted[column.id] or column.name.lower() in self.said}
        return self._table if _TABLE in self.said else None, {one: noted[one] for one in noted if one in known}


def by_name(own: Iterable[Column], others: Iterable[Column]) -> dict[int, int]:
    """Return for the ids of other columns those of a table's own of the same name."""
    ids = {column.name.lower(): column.id for column in own}
    return {column.id: ids[column.name.lower()] for column in others if column.name.lower() in ids}


def _bounded(text: str) -> str:
    """Return a text as it can be stored: no longer than a bound, and without halves of characters."""
    return text[:LONGEST].encode("utf-8", "replace").decode()
