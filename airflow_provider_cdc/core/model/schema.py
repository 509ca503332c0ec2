# SPDX-License-Identifier: Apache-2.0
"""Define the structure of a source table: column types, columns with ids that survive a rename, keys."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

_ZEROS = {
    "date": "0000-00-00",
    "datetime": "0000-00-00 00:00:00",
    "timestamp": "0000-00-00 00:00:00",
    "time": "00:00:00",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "inet4": "0.0.0.0",
    "inet6": "::",
}
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year"})


class TableName(NamedTuple):
    """Hold a table's name as the source wrote it, never trimmed or folded."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """Hold a column type of the MySQL family.

    :param name: lower-case base name without arguments: ``int``, ``varchar``, ``enum``; synonyms resolved
        (``integer`` -> ``int``, ``numeric``, ``dec`` and ``fixed`` -> ``decimal``, ``real`` and ``double precision`` ->
        ``double``, ``bool`` and ``boolean`` -> ``tinyint`` with length 1, ``serial`` -> ``bigint`` unsigned).
    :param length: characters, digits, bits, or fraction digits of temporal types, as declared.
    :param scale: fraction digits of DECIMAL, or of FLOAT(m,d) and DOUBLE(m,d).
    :param unsigned: UNSIGNED or ZEROFILL.
    :param labels: members of ENUM and SET, unquoted, in order.
    :param charset: character set of a text column, if stated.
    """

    name: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    labels: tuple[str, ...] = ()
    charset: str | None = None

    def implicit_default(self, server: str | None = None) -> str:
        """Return the value of a NOT NULL column without default if a statement stated no value for it.

        Measured on MySQL 5.7 and 8.0, MariaDB 10.11 and 11.4.

        :param server: ``mariadb``, where JSON is a text, or any other.
        """
        if self.name == "json":
            return "" if server == "mariadb" else "null"
        if self.name == "enum":
            return self.labels[0]
        return "0" if self.name in _NUMBERS else _ZEROS.get(self.name, "")

    def __str__(self) -> str:
        text = self.name
        if self.labels:
            text += "(" + ",".join("'" + label.replace("'", "''") + "'" for label in self.labels) + ")"
        elif self.length is not None:
            text += f"({self.length}" + (f",{self.scale}" if self.scale is not None else "") + ")"
        return text + (" unsigned" if self.unsigned else "")


@dataclass(frozen=True, slots=True)
class Default:
    """Hold a column's default.

    :param kind: ``constant`` (``text`` is the unquoted value, None is NULL), ``now`` (CURRENT_TIMESTAMP and synonyms)
        or ``expression`` (``text`` is the SQL; its value cannot be known here).
    """

    kind: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """Hold one column of a table.

    :param id: stays the same over renames and type changes; a name that is dropped and added again gets a new one.
    :param dropped: the source has dropped it, and the target keeps it: rows have no values of it any more.
    """

    id: int
    name: str
    type: ColumnType
    nullable: bool = True
    default: Default | None = None
    generated: bool = False
    auto_increment: bool = False
    dropped: bool = field(default=False, repr=False)  # texts of schemas are part of stored digests

    def only_in_target(self) -> Column:
        """Return the column as it is where rows do not have it (any more)."""
        return replace(self, nullable=True, default=None, generated=False, auto_increment=False, dropped=True)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Hold columns in the source's order and the key as column ids (empty: the table is a multiset)."""

    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    _by_id: dict[int, Column] = field(init=False, repr=False, compare=False, hash=False, default_factory=dict)

    def column(self, column_id: int) -> Column | None:
        """Return the column with this id, or None."""
        return self._ids().get(column_id)

    def _ids(self) -> dict[int, Column]:
        # filled on first use: while a DDL is applied, many schemas are made only to look up a name
        if not self._by_id:
            self._by_id.update({column.id: column for column in self.columns})
        return self._by_id

    def named(self, name: str) -> Column | None:
        """Return the column with this name; an exact match wins over one in another case (MySQL folds column names)."""
        for column in self.columns:
            if column.name == name:
                return column
        lower = name.lower()
        folded = [column for column in self.columns if column.name.lower() == lower]
        return folded[-1] if folded else None

    @property
    def columns_in_rows(self) -> tuple[Column, ...]:
        """The columns that rows have: without those that only the target keeps."""
        return tuple(column for column in self.columns if not column.dropped)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The key's columns in key order."""
        return tuple(self._ids()[i] for i in self.key)

    def shape(self) -> tuple[Any, ...]:
        """Return what two structures are compared by: without ids and defaults."""
        columns = [(column.name, column.type, column.nullable) for column in self.columns_in_rows]
        return columns, [column.name for column in self.key_columns]

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"columns": [_column_document(column) for column in self.columns], "key": list(self.key)}

    @staticmethod
    def from_document(data: dict[str, Any]) -> TableSchema:
        """Rebuild from :meth:`document`."""
        columns = []
        for item in data["columns"]:
            column_type = dict(item["type"])
            column_type["labels"] = tuple(column_type["labels"])
            default = Default(**item["default"]) if item["default"] else None
            columns.append(Column(**{**item, "type": ColumnType(**column_type), "default": default}))
        return TableSchema(tuple(columns), tuple(data["key"]))


def _column_document(column: Column) -> dict[str, Any]:
    # written out: ``dataclasses.asdict`` copies deeply and took a quarter of a batch of many tables
    column_type, default = column.type, column.default
    return {
        "id": column.id,
        "name": column.name,
        "type": {
            "name": column_type.name,
            "length": column_type.length,
            "scale": column_type.scale,
            "unsigned": column_type.unsigned,
            "labels": list(column_type.labels),
            "charset": column_type.charset,
        },
        "nullable": column.nullable,
        "default": None if default is None else {"kind": default.kind, "text": default.text},
        "generated": column.generated,
        "auto_increment": column.auto_increment,
        **({"dropped": True} if column.dropped else {}),
    }
