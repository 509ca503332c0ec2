# SPDX-License-Identifier: Apache-2.0
"""Read the settings of Debezium's transform ExtractNewRecordState, which flattens rows.

The options have the transform's own names and values: they are copied from the connector's configuration
(docs/wire/debezium-dtle.md B12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_cdc.core.errors import ConfigurationError

DELETED = "__deleted"
"""Member that the transform adds to each row in the modes that rewrite deletes; no prefix changes its name."""

_FIELDS, _HEADERS = "add.fields", "add.headers"
_MODE, _OLD_MODE, _DROP = "delete.tombstone.handling.mode", "delete.handling.mode", "drop.tombstones"
_REWRITE, _WITH_TOMBSTONE = "rewrite", "rewrite-with-tombstone"
_OF = "as at the transform ExtractNewRecordState"
OPTIONS: dict[str, str] = {
    _FIELDS: f"members that each row has behind its columns, with commas between, {_OF}: rows are flattened",
    f"{_FIELDS}.prefix": f"what their names begin with, {_OF} (default __)",
    _HEADERS: f"headers that each row has, with commas between, {_OF}: rows are flattened",
    f"{_HEADERS}.prefix": f"what their names begin with, {_OF} (default __)",
    _MODE: f"how deletes are written, {_OF}: {_REWRITE} | {_WITH_TOMBSTONE} (other modes lose them)",
    _OLD_MODE: f"the same in versions before 2.5: {_REWRITE} (other modes lose them)",
    _DROP: f"with {_OLD_MODE}: true | false (default true)",
}

# members that stand in no struct, or in another than ``source``, where a setting names none
_STRUCTS = {
    **dict.fromkeys(("op", "ts_ms", "ts_us", "ts_ns"), ""),
    **dict.fromkeys(("id", "total_order", "data_collection_order"), "transaction."),
}


@dataclass(frozen=True)
class Flattening:
    """Say how rows are flattened.

    :param fields: added member of a row -> the member of its message that it was, such as ``source.pos``.
    :param headers: header of a row -> the same.
    :param tombstones: whether a record without a value follows each delete; else none is ever written.
    """

    fields: Mapping[str, str]
    headers: Mapping[str, str]
    tombstones: bool

    def demand(self, needed: Iterable[str]) -> None:
        """Demand that rows keep what orders them.

        :param needed: members of a message.
        :raises ConfigurationError: some are neither among the fields nor among the headers.
        """
        added = {*self.fields.values(), *self.headers.values()}
        missing = [member for member in needed if member not in added]
        if missing:
            raise ConfigurationError(
                [
                    f"source.options.{_FIELDS}: lacks {', '.join(missing)}, without which flattened rows cannot be "
                    f"ordered: add them to {_FIELDS} or {_HEADERS} of the transform ExtractNewRecordState at the "
                    "connector, and state them here"
                ]
            )


def flattening_of(options: Mapping[str, str]) -> Flattening | None:
    """Return how the rows of a pipeline are flattened, None where its options do not say that they are.

    :raises ConfigurationError: settings contradict each other, or deletes are written so that they have no place.
    """
    stated = [name for name in OPTIONS if name in options]
    if not stated:
        return None
    if _FIELDS not in options and _HEADERS not in options:
        raise ConfigurationError(
            [
                f"source.options.{stated[0]}: is a setting of the transform ExtractNewRecordState: state its {_FIELDS} "
                f"or {_HEADERS} too, which say where a row has its place in the log"
            ]
        )
    problems: list[str] = []
    fields, headers = (
        _added(options.get(name, ""), options.get(f"{name}.prefix", "__"), name, problems)
        for name in (_FIELDS, _HEADERS)
    )
    tombstones = _tombstones(options, problems)
    if problems:
        raise ConfigurationError(problems)
    return Flattening(fields, headers, tombstones)


def _added(setting: str, prefix: str, option: str, problems: list[str]) -> dict[str, str]:
    """Return what a list of fields adds: name -> member of the message."""
    added = {}
    for item in filter(None, (part.strip() for part in setting.split(","))):
        path, colon, alias = item.partition(":")
        struct, dot, member = path.rpartition(".")
        if not member or "." in struct or ":" in alias or (colon and not alias) or (dot and not struct):
            problems.append(f"source.options.{option}: {item!r} is not a field, struct.field or field:name")
            continue
        name = alias or (f"{struct}_{member}" if dot else member)
        added[prefix + name] = f"{struct}.{member}" if dot else _STRUCTS.get(member, "source.") + member
    return added


def _tombstones(options: Mapping[str, str], problems: list[str]) -> bool:
    """Return whether records without a value follow deletes."""
    name = _MODE if _MODE in options or _OLD_MODE not in options else _OLD_MODE
    mode, known = options.get(name), (_REWRITE, _WITH_TOMBSTONE) if name == _MODE else (_REWRITE,)
    if mode not in known:
        said = "is not stated" if mode is None else f"{mode!r} loses deletes"
        problems.append(
            f"source.options.{name}: {said}: a delete keeps its row and its place in the log only where the transform "
            f"is set to {' or '.join(known)}: set it at the connector, and state it here"
        )
    drop = options.get(_DROP, "true")
    if drop not in ("true", "false"):
        problems.append(f"source.options.{_DROP}: {drop!r} is not one of true, false")
    return mode == _WITH_TOMBSTONE or (name == _OLD_MODE and drop == "false")
