# SPDX-License-Identifier: Apache-2.0
"""Find the fields of a user's Avro schema by the options ``field.*`` of drs-avro, checked against the schema.

DRS's schema is not public (docs/wire/huawei-drs.md 1), so nothing is taken for granted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from airflow_provider_cdc.core.formats.drs.avro_images import Images, Row
from airflow_provider_cdc.core.formats.drs.avro_reader import AvroType
from airflow_provider_cdc.core.formats.drs.avro_tokens import Token

_NUMBER = frozenset({"int", "long", "string"})
_TEXT = frozenset({"string", "enum"})
# role -> (types its field may have, what it is)
ROLES: dict[str, tuple[frozenset[str], str]] = {
    "operation": (_TEXT, "what a record is, by the names of the options operation.*"),
    "position": (_NUMBER, "number that orders all records of the source"),
    "time": (_NUMBER, "time of the source: 10, 13 or 16 digits are seconds, milliseconds, microseconds"),
    "database": (_TEXT, "name of the database"),
    "table": (_TEXT, "name of the table"),
    "name": (_TEXT, "database.table in one, in place of the two"),
    "before": (frozenset(), "image before; null where there is none"),
    "after": (frozenset(), "image after; null where there is none"),
    "columns": (frozenset({"array"}), "names of the columns, where images are lists of values"),
    "statement": (_TEXT, "text of a schema change"),
    "transaction": (_NUMBER, "id of the transaction"),
}
_DIGITS = {10: 1_000_000, 13: 1000, 16: 1}  # of a time -> microseconds a unit; between 2001 and 2286 each has so many
_Get = Callable[[Any], Any]


class Fields:
    """Read what a change needs from a record.

    :param symbols: what enum symbols mean among the values of images.
    """

    def __init__(self, root: AvroType, options: Mapping[str, str], symbols: Mapping[str, Token]) -> None:
        self.problems: list[str] = []
        self._get: dict[str, _Get] = {}
        self._types: dict[str, AvroType] = {}
        paths = {role: options[f"field.{role}"] for role in ROLES if f"field.{role}" in options}
        for role, path in paths.items():
            self._find(role, path, root)
        for role in ("operation", "position", "before", "after", *(() if "name" in paths else ("database", "table"))):
            if role not in paths:
                known = ", ".join(root.fields)
                self._problem(role, f"is missing ({ROLES[role][1]}); fields of the schema: {known}")
        self._images: dict[str, Images] = {}
        for side in ("before", "after"):
            self._image(side, symbols, "columns" in paths)
        self._columns = self._column_names() if "columns" in self._types else None
        # lists of columns that were looked at, and the names in them; the reader gives the same object for equal bytes
        self._known = deque[tuple[Any, list[str]]](maxlen=32)

    def _problem(self, role: str, sentence: str) -> None:
        self.problems.append(f"source.options.field.{role}: {sentence}")

    def _find(self, role: str, path: str, root: AvroType) -> None:
        kind, steps = root, path.split(".")
        for step in steps:
            inner = [branch for branch in kind.branches if branch.kind in ("record", "map")]
            next_kind = (
                inner[0].fields.get(step, inner[0].parts[0] if inner[0].parts else None) if len(inner) == 1 else None
            )
            if next_kind is None:
                known = ", ".join(inner[0].fields) if len(inner) == 1 else "none"
                return self._problem(role, f"the schema has no field {step!r} there; known: {known}")
            kind = next_kind
        allowed = ROLES[role][0]
        if allowed and not any(branch.kind in allowed for branch in kind.branches):
            return self._problem(role, f"{path!r} is not {' or '.join(sorted(allowed))}")
        self._get[role], self._types[role] = _getter(steps), kind

    def _image(self, side: str, symbols: Mapping[str, Token], named: bool) -> None:
        if side not in self._types:
            return
        try:
            self._images[side] = Images(self._types[side], symbols)
        except ValueError as error:
            return self._problem(side, str(error))
        if self._images[side].needs_names and not named:
            self._problem("columns", f"is missing: images are lists of values ({ROLES['columns'][1]})")

    def _column_names(self) -> _Get | None:
        """Return what gives the names of a list of columns: texts, or records with a member ``name``."""
        item = next(branch for branch in self._types["columns"].branches if branch.kind == "array").parts[0]
        if item.kind == "string":
            return lambda entry: entry
        if item.kind == "record" and "name" in item.fields:
            return lambda entry: entry["name"]
        self._problem("columns", "is not a list of texts or of records with a field 'name'")
        return None

    # ---- of one record

    def text(self, role: str, record: Any) -> str | None:
        """Return a text, None where it is null or nothing is stated for it.

        :raises ValueError: it is not a text.
        """
        value = self._value(role, record)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"a {role} that is not a text")
        return value

    def transaction(self, record: Any) -> str | None:
        """Return the transaction's id."""
        value = self._value("transaction", record)
        return None if value is None else str(value)

    def position(self, record: Any) -> int:
        """Return the number that orders records."""
        number = self._number("position", record)
        if number is None or not 0 <= number < 2**63:
            raise ValueError("a change without a position, or with one that is implausible")
        return number

    def time(self, record: Any) -> int | None:
        """Return the source's time in microseconds since the epoch."""
        number = self._number("time", record)
        if number is None:
            return None
        unit = _DIGITS.get(len(str(number)))
        if number < 0 or unit is None:
            raise ValueError("a time that is implausible")
        return number * unit

    def names(self, record: Any) -> tuple[str, str]:
        """Return database and table of a row."""
        if "name" in self._get:
            return _names(*(self.text("name", record) or "").split("."))
        return _names(self.text("database", record) or "", self.text("table", record) or "")

    def columns(self, record: Any) -> list[str] | None:
        """Return the names of the columns, None where the record does not list them."""
        listed = None if self._columns is None else self._value("columns", record)
        if self._columns is None or listed is None:
            return None
        for seen, names in self._known:
            if seen is listed:
                return names
        if not isinstance(listed, list):
            raise ValueError("columns that are not a list")
        names = list(map(self._columns, listed))
        if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise ValueError("a column twice, or without a name")
        self._known.appendleft((listed, names))
        return names

    def images(self, side: str, record: Any, columns: list[str] | None) -> list[Row]:
        """Return the rows before or after."""
        return self._images[side].rows(self._get[side](record), columns)

    def _value(self, role: str, record: Any) -> Any:
        get = self._get.get(role)
        value = None if get is None else get(record)
        return value[1] if value.__class__ is tuple else value

    def _number(self, role: str, record: Any) -> int | None:
        value = self._value(role, record)
        if value is None:
            return None
        if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) < 20):
            raise ValueError(f"a {role} that is not a number")
        return int(value)


@lru_cache(maxsize=1024)
def _names(*parts: str) -> tuple[str, str]:
    if len(parts) != 2 or not all(parts) or any(character < " " for part in parts for character in part):
        raise ValueError("a row without its database or table, or with implausible names")
    return parts[0], parts[1]


def _getter(steps: list[str]) -> _Get:
    if len(steps) == 1:
        return itemgetter(*steps)

    def get(record: Any) -> Any:
        for step in steps:
            if record.__class__ is tuple:
                record = record[1]
            if record.__class__ is not dict:
                return None
            record = record.get(step)
        return record

    return get
