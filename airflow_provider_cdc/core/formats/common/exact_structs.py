# SPDX-License-Identifier: Apache-2.0
"""Decode JSON objects with a known set of members into msgspec structs, for about half the cost of a dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from airflow_provider_cdc.core.values.image_structs import structable


class ExactStruct(NamedTuple):
    """A struct that knows just some members, which may come in any order.

    Values stay as received. What is decoded and encoded again has the members in the order of the struct.

    :param decode: reads an object; raises msgspec.MsgspecError if it has other members.
    :param fields: attribute of the struct by member name.
    """

    decode: Callable[[Any], Any]
    fields: Mapping[str, str]


def _reject(image: Any) -> Any:
    raise msgspec.ValidationError("no members are known")


NO_STRUCT = ExactStruct(_reject, {})
"""Reads no object."""


@lru_cache(maxsize=1024)
def exact_struct(names: tuple[str, ...], *, partial: bool = False) -> ExactStruct:
    """Return a struct with these members; :data:`NO_STRUCT` without members, or where msgspec allows none of them.

    :param partial: whether an object may lack some of them.
    """
    if not names or not all(map(structable, names)):
        return NO_STRUCT
    rename = {f"f{index}": name for index, name in enumerate(names)}
    kind: tuple[Any, ...] = (msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) if partial else (msgspec.Raw,)
    fields = [(field, *kind) for field in rename]
    struct = msgspec.defstruct("Exact", fields, rename=rename, forbid_unknown_fields=True, gc=False)
    return ExactStruct(msgspec.json.Decoder(struct).decode, {name: field for field, name in rename.items()})
