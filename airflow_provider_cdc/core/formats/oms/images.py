# SPDX-License-Identifier: Apache-2.0
"""Read what images of OMS's methods have in common: members, description, NULL in both images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.common.exact_structs import NO_STRUCT, exact_struct
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.formats.oms import columns as oms_columns
from airflow_provider_cdc.core.formats.oms.options import OmsOptions
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_NULL = msgspec.Raw(b"null")
_read: Any = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class OmsDescription(Description):
    """A description whose details are type names, and whether the source speaks Oracle's dialect."""

    oracle: bool = False


class Descriptions:
    """Number the distinct ``columns`` texts."""

    def __init__(self) -> None:
        self._texts = Interner[str]()
        self.texts = self._texts.values

    def number(
        self,
        names: tuple[str, ...],
        key: tuple[str, ...] | None,
        types: Mapping[str, str],
        oracle: bool,
        complete: bool,
    ) -> int:
        """Return the number of a text.

        :param key: columns of the key as the record names them: they count if the row has them all
            (docs/wire/oceanbase-oms.md 10.7).
        :param types: type names by column: they count where a column has exactly this name
            (docs/wire/oceanbase-oms.md 10.20, 10.31).
        """
        known = None if key is None or not set(key) <= set(names) else key
        own_types = {name: types[name] for name in names if name in types}
        return self._texts.id_of(msgspec.json.encode([names, known, own_types, oracle, complete]).decode())


class Images:
    """Recognise images of one table by their members without parsing their values.

    :param key: names of the key's columns, empty without a key.
    """

    def __init__(self, descriptions: Descriptions, key: tuple[str, ...], oracle: bool) -> None:
        self._descriptions, self._key, self._oracle = descriptions, key, oracle
        self._types: Mapping[str, str] = {}
        self._names: tuple[str, ...] = ()
        self._fits = NO_STRUCT.decode
        self._number = 0

    def state_types(self, types: Mapping[str, str]) -> None:
        """Take the type names that later images go with."""
        self._types, self._fits = types, NO_STRUCT.decode

    def described(self, before: bytes | None, after: bytes | None, null_is_unchanged: bool) -> tuple[bytes | None, int]:
        """Return a row's image after it and the number of its ``columns`` text.

        :param null_is_unchanged: leave out what is NULL in both images of an update.
        """
        if before is not None and after is not None and null_is_unchanged:
            return self._changed(before, after)
        try:
            if after is not None:
                self._fits(after)
            if before is not None:
                self._fits(before)
        except msgspec.ValidationError:
            self._learn(before, after)
        return after, self._number

    def _learn(self, before: bytes | None, after: bytes | None) -> None:
        """Take the members of images that are not as those before them."""
        image = after if after is not None else before or b""
        if not self._known(image):
            self._names = tuple(members_of(image))
            if not self._names:
                raise ValueError("an image without columns")
            self._fits = exact_struct(self._names).decode
            self._number = self._descriptions.number(self._names, self._key, self._types, self._oracle, complete=True)
        if before is not None and not self._known(before) and not set(members_of(before)) <= set(self._names):
            raise ValueError("an image before an update with columns that the one after it lacks")

    def _changed(self, before: bytes, after: bytes) -> tuple[bytes, int]:
        new = members_of(after)
        image, names = without_unchanged_nulls(members_of(before), new)
        complete = len(names) == len(new)
        return image, self._descriptions.number(names, self._key, self._types, self._oracle, complete)

    def _known(self, image: bytes) -> bool:
        try:
            self._fits(image)
        except msgspec.ValidationError:
            return False
        return True


def without_unchanged_nulls(
    before: Mapping[str, msgspec.Raw], after: Mapping[str, msgspec.Raw]
) -> tuple[bytes, tuple[str, ...]]:
    """Return an update's image after it without what is NULL in both, and the names of what is left."""
    left = {name: token for name, token in after.items() if token != _NULL or before.get(name) != _NULL}
    if not left:
        raise ValueError("an update whose images are NULL throughout")
    return msgspec.json.encode(left), tuple(left)


def describe(columns: str) -> OmsDescription:
    """Read what :meth:`Descriptions.number` wrote."""
    names, key, types, oracle, complete = _read(columns)
    return OmsDescription(tuple(names), None if key is None else tuple(key), types or None, complete, oracle)


def encoding_of(name: str, column: ColumnType, description: Description | None, zone: str | None) -> Encoded:
    """Return the encoding of a column in the images, by its type in the source and by what the record says of it."""
    said = None if description is None or description.details is None else description.details.get(name)
    oracle = isinstance(description, OmsDescription) and description.oracle
    return oms_columns.encoding(name, column, said=said, oracle=oracle, zone=zone)


def inferred_schema(description: Description) -> TableSchema | None:
    """Return a schema made from the type names that a record states."""
    oracle = isinstance(description, OmsDescription) and description.oracle
    if not description.complete:
        return None
    return oms_columns.inferred_schema(description.names, description.key, description.details or {}, oracle=oracle)


class OmsFormat:
    """Share what the methods' images have in common, whatever envelope they come in."""

    updates_move_keys = True
    updates_name_changes = False
    inserts_lack_defaults = False
    chosen_keys = False
    row_numbers = "event"
    snapshot_rows = "unnumbered"
    _options: OmsOptions

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        return describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return the encoding of a column in the images."""
        return encoding_of(name, column, description, self._options.zone)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: schema changes carry no structure."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the types that a record names; None where it names none, or not the key."""
        return inferred_schema(description)
