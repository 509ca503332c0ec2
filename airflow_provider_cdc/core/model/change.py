# SPDX-License-Identifier: Apache-2.0
"""Define the kinds and operations of changes, the decoded events (docs/design/change-record.md)."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Name the kinds of changes."""

    ROW = "row"
    SCHEMA = "schema"
    PROGRESS = "progress"
    TRANSACTION = "transaction"
    IGNORED = "ignored"
    ERROR = "error"


class Op(StrEnum):
    """Name the operation of a row change, or the end of a transaction that a mark reports.

    A schema change with ``snapshot`` was written by a snapshot: it describes a structure, the table did not change.
    ``incremental`` is a row that a snapshot read while changes were streamed.
    """

    SNAPSHOT = "snapshot"
    INCREMENTAL = "incremental"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
