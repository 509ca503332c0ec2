# SPDX-License-Identifier: Apache-2.0
"""State of one table between batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.core.documents.proof import Proof
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.plain_data import Document


@dataclass(slots=True)
class TableState(Document):
    """State of one table after a batch.

    :param location: place of its rows below the root of the lake, empty where it has none.
    :param version: the table's own version after our last commit, None before the first.
    :param applied_seq: newest batch whose changes the rows hold.
    :param applied_position: newest source position among them, empty before the first row.
    :param source_time: newest source time among them, microseconds since the epoch.
    :param schema: schema that the rows lie under.
    :param pending_seq: batch that left removals which found no row yet (tables without key), None without any.
    :param pending_until: position of the newest of them, empty where that is not known.
    :param rewind_to: position of a late schema change that the rows do not know yet (the table waits or is parked).
    :param timeline_mark: digest of the schema changes that the rows went through.
    :param snapshot_position: where the snapshot stands that the rows begin with, empty if they begin with the table.
    :param snapshot_sent: Kafka's time of that snapshot's first statement in milliseconds, where a table without key
        needs it to tell snapshots at one position apart.
    :param code: stable error code behind ``reason``, where an error is the reason.
    :param tried_with: digest of the configuration that a parked table was last tried with.
    :param seen_version: version that the location of a parked table had when it was last tried.
    :param rebuilt_seq: batch that last rebuilt the table, 0 for none: versions of the table before it mean nothing now.
    :param provided: state (document) of the copy of the files that an operator provided and the rows begin with, None
        if they begin with the table or a snapshot. In the state of the copy itself: ``path`` and ``since`` as stated.
    :param made_with: options that the rows were made with (``stored_layout.MadeWith``), None before there are any.
    :param spark_may_write: a merge into the table may be large enough for the Spark writer (``writer: auto``): batches
        start Spark with it.
    :param resolved_since: batch whose rows the newest commit went on from, 0 where it began with nothing: rows of later
        batches that did not fit then, and do now, are in the table. None before the first commit.
    :param laid: how its columns lie by rules of the pipeline (``LaidColumns.document``), None where they are the
        source's.
    :param to_empty: place that it moved away from and that could not be emptied yet, empty for none.
    :param comments: digest of what the source says of table and columns, empty where it never said anything.
    :param proof: how far the log has proved the rows. Documents of earlier versions have none: it begins then.
    """

    table_id: str
    database: str
    table: str
    location: str
    version: int | None = None
    applied_seq: int = 0
    applied_position: str = ""
    source_time: int | None = None
    schema: dict[str, Any] | None = None
    state: TableStatus = TableStatus.OK
    reason: str = ""
    waiting_since: str | None = None
    pending_seq: int | None = None
    pending_until: str = ""
    rewind_to: str | None = None
    timeline_mark: str = ""
    snapshot_position: str = ""
    snapshot_sent: int = 0
    notes: list[str] = field(default_factory=list)
    code: str = ""
    tried_with: str = ""
    seen_version: int | None = None
    rebuilt_seq: int = 0
    provided: dict[str, Any] | None = None
    spark_may_write: bool = False
    made_with: dict[str, str] | None = None
    resolved_since: int | None = None
    laid: list[list[Any]] | None = None
    to_empty: str = ""
    comments: str = ""
    proof: Proof = field(default_factory=Proof)

    @property
    def mode(self) -> str:
        """The mode that its rows were made with, and what options of it say of them."""
        return (self.made_with or {}).get("mode", "mirror")
