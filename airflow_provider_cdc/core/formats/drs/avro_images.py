# SPDX-License-Identifier: Apache-2.0
"""Read row images in Avro, in any of four shapes, as members and their tokens.

A map or a record of columns; a list of such (several rows); a list of records with ``name`` and ``value``; a list of
values with a list of the columns' names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow_provider_cdc.core.formats.drs.avro_reader import AvroType
from airflow_provider_cdc.core.formats.drs.avro_tokens import ABSENT, RenderAll, Token, renderer, renderer_of_all

Row = dict[str, Token]
_Read = Callable[[Any, Sequence[str] | None], list[Row]]


class Images:
    """Read images of one type.

    :param kind: the type of the field that holds them.
    :param symbols: what enum symbols mean among values.
    :raises ValueError: no value of this type is an image; the message says what the shapes are.
    """

    def __init__(self, kind: AvroType, symbols: Mapping[str, Token]) -> None:
        self._symbols = symbols
        self._of_map: Callable[[Mapping[str, Any]], Row] | None = None
        self._of_record: dict[str, Callable[[Mapping[str, Any]], Row]] = {}
        self._of_list: _Read | None = None
        self.needs_names = False
        for branch in kind.branches:
            if branch.kind == "map":
                self._of_map = self._map(branch)
            elif branch.kind == "record":
                self._of_record[branch.name] = self._record(branch)
            elif branch.kind == "array":
                self._of_list = self._list(branch.parts[0])
        if not (self._of_map or self._of_record or self._of_list):
            raise ValueError("is neither a map, nor a record, nor a list")

    def rows(self, value: Any, names: Sequence[str] | None) -> list[Row]:
        """Return the rows of an image, none for null.

        :param names: the columns' names, for a list of values.
        :raises ValueError: it is not an image; also :class:`core.values.fields.ConversionError`.
        """
        if value is None:
            return []
        if value.__class__ is list and self._of_list is not None:
            return self._of_list(value, names)
        return [self._row(value)]

    def _row(self, value: Any) -> Row:
        if value.__class__ is tuple and value[0] in self._of_record:
            return self._of_record[value[0]](value[1])
        if value.__class__ is dict:
            read = self._of_map or next(iter(self._of_record.values()), None)
            if read is not None:
                return read(value)
        raise ValueError("an image that is not a list, map or record")

    def _map(self, kind: AvroType) -> Callable[[Mapping[str, Any]], Row]:
        tokens = renderer_of_all(kind.parts[0], self._symbols)
        return lambda value: dict(zip(value, tokens(value.values()), strict=True))

    def _record(self, kind: AvroType) -> Callable[[Mapping[str, Any]], Row]:
        tokens = {name: renderer(part, self._symbols) for name, part in kind.fields.items()}
        return lambda value: {name: token(value[name]) for name, token in tokens.items()}

    def _list(self, item: AvroType) -> _Read:
        if item.kind == "map":
            row = self._map(item)
            return lambda value, names: [row(entry) for entry in value]
        if item.kind == "record" and item.fields.keys() >= {"name", "value"}:
            tokens = renderer_of_all(item.fields["value"], self._symbols)
            return lambda value, names: [_row_of_pairs(value, tokens)]
        self.needs_names = True
        tokens = renderer_of_all(item, self._symbols)
        return lambda value, names: [_row_of_values(value, names, tokens)]


def _row_of_pairs(pairs: list[dict[str, Any]], tokens: RenderAll) -> Row:
    names = [pair["name"] for pair in pairs]
    plain = all(isinstance(name, str) for name in names)
    row = dict(zip(names, tokens([pair["value"] for pair in pairs]), strict=True)) if plain else {}
    if not plain or len(row) != len(pairs):
        raise ValueError("an image with a column twice, or without a name")
    return row


def _row_of_values(values: list[Any], names: Sequence[str] | None, tokens: RenderAll) -> Row:
    # with one value too few or too many nothing says which column each belongs to
    if names is None or len(names) != len(values):
        raise ValueError(f"an image of {len(values)} values for {len(names or ())} columns")
    return dict(zip(names, tokens(values), strict=True))


def carried(row: Row) -> Row:
    """Return a row without the columns that say that they are not carried."""
    return {name: token for name, token in row.items() if token is not ABSENT}
