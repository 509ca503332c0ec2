# SPDX-License-Identifier: Apache-2.0
"""Say what an error of a table means: delta-rs gives few errors a class of their own, so their texts are looked at.

Whether a batch runs again or its table is parked follows from what went wrong, and this is the one list of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from airflow_provider_cdc.core.errors import REBUILD, CdcError, SinkError, UnavailableError

_AGAIN = "nothing of it is visible; run again when the store answers"


class Cause(Enum):
    """Why a table cannot be read or written."""

    CONFLICT = "conflict"
    REFUSED = "refused"
    UNFIT = "unfit"
    MISSING = "missing"
    DAMAGED = "damaged"
    PASSING = "passing"
    OTHER = "other"


class DamagedFileError(Exception):
    """A data file is not what was written, and reading it again changes nothing."""


# The first that fits counts. Texts of delta-rs 1.6, of object_store, DataFusion and pyarrow, and of Delta for Spark.
_TEXTS: tuple[tuple[Cause, re.Pattern[str]], ...] = tuple(
    (cause, re.compile(text, re.DOTALL))
    for cause, text in (
        # the table's properties and features forbid the commit, today and tomorrow
        (Cause.REFUSED, r"append-only|APPEND_ONLY"),
        (Cause.REFUSED, r"[Uu]nsupported table features|Table features must be specified|UNSUPPORTED_\w*FEATURE"),
        (Cause.REFUSED, r"failed validation check|Invariant violations|VIOLATE_CONSTRAINT|NOT_NULL_CONSTRAINT"),
        (Cause.REFUSED, r"is not supported for write operation"),
        # the batch's rows cannot be merged
        (Cause.UNFIT, r"MULTIPLE_SOURCE_ROW_MATCHING"),
        # somebody else was first
        (Cause.CONFLICT, r"Failed to commit transaction|Tried committing existing table version"),
        (Cause.CONFLICT, r"A (Delta Lake )?table already exists|DELTA_CONCURRENT|Concurrent\w+Exception"),
        # a file that the log names
        (Cause.MISSING, r"Object at location .* not found|[Nn]o such file|NoSuchKey"),
        (Cause.DAMAGED, r"Requested range was invalid|[Ii]s a directory|os error 2[01]\b"),
        (Cause.DAMAGED, r"Parquet (argument )?error|Invalid Parquet file"),
        # the store, which may answer later
        (Cause.PASSING, r"Object Store error|Generic (?!DeltaTable )\w+ error:|HTTP error|error sending request"),
        (Cause.PASSING, r"os error \d+|Log storage error|Transaction failed"),
    )
)


def cause_of(error: BaseException) -> Cause:
    """Return what an error of delta-rs, pyarrow or a store means."""
    if isinstance(error, DamagedFileError):
        return Cause.DAMAGED
    if isinstance(error, FileNotFoundError):
        return Cause.MISSING
    text = str(error)
    known = next((cause for cause, pattern in _TEXTS if pattern.search(text)), None)
    if known is not None:
        return known
    return Cause.PASSING if isinstance(error, OSError) else Cause.OTHER


def reading_error(error: BaseException, location: str, version: int | None) -> CdcError:
    """Return the error of a table whose rows cannot be read."""
    where = {"location": location, "version": version}
    match cause_of(error):
        case Cause.MISSING:
            return _missing(error, where)
        case Cause.PASSING:
            text = f"the table could not be read: {first_line(error)}"
            return UnavailableError("sink.unavailable", text, where=where, hint=_AGAIN)
        case _:
            return SinkError(
                "sink.unreadable",
                f"the table's rows cannot be read: {first_line(error)}",
                where=where,
                hint=f"restore the damaged file, or {REBUILD}",
            )


def writing_error(error: BaseException, location: str, properties: Mapping[str, str | None]) -> CdcError:
    """Return the error of a commit that did not go through; nothing of it is visible.

    :param properties: the table's, which may forbid it.
    """
    where: dict[str, Any] = {"location": location}
    match cause_of(error):
        case Cause.CONFLICT:
            return conflict(location)
        case Cause.MISSING:
            return _missing(error, where)
        case Cause.PASSING:
            return _not_committed("the commit", error, where)
        case Cause.DAMAGED:
            return reading_error(error, location, None)
        case Cause.REFUSED:
            return refused(first_line(error), location, properties)
        case _:
            hint = f"nothing of it is visible; see the table's files and its columns, or {REBUILD}"
            return SinkError("sink.refused", f"Delta refuses the commit: {first_line(error)}", where=where, hint=hint)


def spark_error(error: BaseException, location: str) -> CdcError:
    """Return the error of a commit of Spark's that did not go through.

    Delta's errors reach Python as bare Py4J errors; what is not known of them is Spark's or the store's.
    """
    if cause_of(error) in (Cause.REFUSED, Cause.UNFIT, Cause.CONFLICT):
        return writing_error(error, location, {})
    return _not_committed("Spark's commit", error, {"location": location})


def refused(reason: str, location: str, properties: Mapping[str, str | None]) -> SinkError:
    """Return the error of a commit that the table's own properties or features forbid."""
    limiting = [f"{name} = {value}" for name, value in properties.items() if _limits(name, value)]
    named = f" (the table has {', '.join(limiting)})" if limiting else ""
    return SinkError(
        "sink.refused",
        f"the table forbids the commit: {reason}{named}",
        where={"location": location},
        hint="unset the property or drop the feature, then run again",
    )


def conflict(location: str) -> UnavailableError:
    """Return the error of a commit that another one came before."""
    return UnavailableError(
        "sink.commit_conflict",
        "another writer committed to the table at the same moment",
        where={"location": location},
        hint="run again; keep other writers away from this table",
    )


def first_line(error: BaseException) -> str:
    """Return an error's class and the line of its text that names it, else the first: others may quote rows."""
    lines = str(error).splitlines() or [""]
    line = next((line for line in lines if "[DELTA_" in line), lines[0])
    return f"{type(error).__name__}: {line[:300]}"


def _limits(name: str, value: str | None) -> bool:
    is_on = (value or "").lower() == "true"
    switch = name == "delta.appendOnly" or name.startswith("delta.enable")
    return name.startswith(("delta.constraints.", "delta.feature.")) or (switch and is_on)


def _missing(error: BaseException, where: dict[str, Any]) -> SinkError:
    return SinkError(
        "sink.file_missing",
        f"a file of the table is missing: {first_line(error)}",
        where=where,
        hint=f"restore the file and run again, or {REBUILD}",
    )


def _not_committed(what: str, error: BaseException, where: dict[str, Any]) -> UnavailableError:
    text = f"{what} did not go through: {first_line(error)}"
    return UnavailableError("sink.write_failed", text, where=where, hint=_AGAIN)
