"""Objects with exactly these members: a struct reads them for half of what a dict costs, and refuses any others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from airflow_provider_cdc.core.values.reading import structable


@lru_cache(maxsize=1024)
def exact_members(names: tuple[str, ...]) -> tuple[Any, Mapping[str, str]] | None:
    """Return what decodes objects with exactly these members, in any order, and the struct's fields by member.

    None where a struct cannot have such members. Values stay as received; what is decoded, encoded again, has the
    members in the order of ``names``.

    :raises msgspec.MsgspecError: (what is returned) the object has other members.
    """
    if not all(map(structable, names)):
        return None
    rename = {f"f{place}": name for place, name in enumerate(names)}
    fields = [(field, msgspec.Raw) for field in rename]
    struct = msgspec.defstruct("Exact", fields, rename=rename, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(struct).decode, {name: field for field, name in rename.items()}
