# SPDX-License-Identifier: Apache-2.0
"""Open a catalog, and say what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    UnauthorizedError,
)
from sqlalchemy.exc import DBAPIError

from airflow_provider_cdc.core.config.sinks.iceberg_options import PREFIX, catalog_properties
from airflow_provider_cdc.core.errors import REBUILD, CdcError, SinkError, UnavailableError, first_line
from airflow_provider_cdc.core.faults import may_be_caught
from spark_jobs.sinks.names import NameRule

UNKNOWN = (CommitFailedException, CommitStateUnknownException, RESTError, DBAPIError, OSError)
"""Errors after which a commit may have gone through: an answer may be lost, and a repeat end with a conflict."""

NAMES: Mapping[str, NameRule] = {
    "sql": NameRule("exact"),
    "rest": NameRule("exact"),
    "glue": NameRule(
        "safe", folds=True
    ),  # https://docs.aws.amazon.com/athena/latest/ug/tables-databases-columns-names.html
}
"""How tables are named in each kind of catalog."""

Refused = BadRequestError
Existing = TableAlreadyExistsError
Missing = NoSuchTableError


def open_catalog(options: Mapping[str, str]) -> Catalog:
    """Return the catalog; a process keeps it, with its connections.

    :raises UnavailableError: it does not answer.
    :raises SinkError: it refuses.
    """
    with reaching({"catalog": options.get(f"{PREFIX}uri", "").rpartition("@")[2]}):
        return _opened(tuple(sorted(catalog_properties(options).items())))


@lru_cache(maxsize=4)
def _opened(properties: tuple[tuple[str, str], ...]) -> Catalog:
    return load_catalog(**dict(properties))


@contextmanager
def reaching(where: dict[str, Any]) -> Iterator[None]:
    """Turn what the catalog or the store raises in the block into errors that say whether to try again.

    :raises UnavailableError: it may answer later.
    :raises SinkError: it refuses.
    """
    try:
        yield
    except BaseException as error:
        if not may_be_caught(error) or isinstance(error, (CdcError, MemoryError)):
            raise
        raise as_sink_error(error, where) from error


def unreadable(error: BaseException, where: dict[str, Any]) -> SinkError:
    """Return the error of a file of the table that is not what it should be."""
    text = f"a file of the table cannot be read: {first_line(error)}"
    hint = f"the next batch tries again; if it lasts, restore the file, or {REBUILD}"
    return SinkError("sink.unreadable", text, where=where, hint=hint)


def as_sink_error(error: BaseException, where: dict[str, Any]) -> CdcError:
    """Return what an error of pyiceberg, the catalog or the store means."""
    text = first_line(error)
    if isinstance(error, FileNotFoundError):
        hint = "restore the file and run again, or rebuild the table"
        return SinkError("sink.file_missing", f"a file of the table is missing: {text}", where=where, hint=hint)
    passing = (ServerError, ServiceUnavailableError, DBAPIError, OSError)
    if isinstance(error, passing):
        return UnavailableError(
            "sink.unavailable",
            f"the catalog or its store failed: {text}",
            where=where,
            hint="run again when it answers",
        )
    if isinstance(error, (EOFError, pa.ArrowInvalid)):
        return unreadable(error, where)
    if isinstance(error, UnauthorizedError):
        hint = "correct the connection named by sink.connection"
        return SinkError("sink.refused", f"the catalog refuses the login: {text}", where=where, hint=hint)
    hint = "see the catalog's log; the table stays as it was"
    return SinkError("sink.refused", f"the table cannot be read or written: {text}", where=where, hint=hint)
