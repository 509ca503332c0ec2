"""Words for changes: the kinds and operations one decoded event can have (DESIGN section 5)."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a change is."""

    ROW = "row"
    SCHEMA = "schema"
    PROGRESS = "progress"
    TRANSACTION = "transaction"
    IGNORED = "ignored"
    ERROR = "error"


class Op(StrEnum):
    """What a row change did, or which end of a transaction a mark stands for.

    A schema change with ``snapshot`` was written by a snapshot: it describes a structure and did not happen.
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
