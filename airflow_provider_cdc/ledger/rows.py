# SPDX-License-Identifier: Apache-2.0
"""Execute single statements of the ledger, each inside a transaction of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import Connection, Row
from sqlalchemy.sql import Select

from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.core.model.status import BatchStatus
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.lease import Lease, lease_lost
from airflow_provider_cdc.ledger.records import Batch

Document = Mapping[str, Any]


def ensure_pipeline(connection: Connection, pipeline: str) -> None:
    """Insert the pipeline's row unless it exists; two processes may try at once."""
    row = _dialect(connection).insert(schema.pipelines).values(name=pipeline, lease_token=0)
    connection.execute(row.on_conflict_do_nothing())


def store_lake(connection: Connection, pipeline: str, lake: Document | None) -> None:
    """Record the identity of the lake, unless it is unknown."""
    if lake is not None:
        mine = schema.pipelines.c.name == pipeline
        connection.execute(update(schema.pipelines).where(mine).values(lake=dict(lake)))


def store_progress(connection: Connection, values: Document, oldest: str | None) -> None:
    """Insert a sample of progress, or replace that of the same moment; two processes may try at once.

    :param oldest: time; samples before it are deleted.
    """
    c = schema.progress.c
    connection.execute(delete(schema.progress).where(c.pipeline == values["pipeline"], c.seen_at < oldest))
    row = _dialect(connection).insert(schema.progress).values(**values)
    key = ("pipeline", "seen_at")
    seen = {name: value for name, value in values.items() if name not in key}
    connection.execute(row.on_conflict_do_update(index_elements=key, set_=seen))


def _dialect(connection: Connection) -> Any:
    # Import only the dialect in use: each takes longer to import than all of the ledger.
    return import_module(f"sqlalchemy.dialects.{connection.dialect.name}")


def locked_pipeline(connection: Connection, pipeline: str) -> Row[Any] | None:
    """Return the pipeline's row, locked until the transaction ends (SQLite: the transaction itself is the lock)."""
    return connection.execute(
        select(schema.pipelines).where(schema.pipelines.c.name == pipeline).with_for_update()
    ).one_or_none()


def change_planned(connection: Connection, lease: Lease, seq: int, columns: Document) -> Document | None:
    """Set columns of a planned batch; return its result, or the note in the place of one, as it was before.

    :raises BusyError: the lease is lost.
    """
    fence(connection, lease)
    c = schema.batches.c
    mine = (c.pipeline == lease.pipeline, c.seq == seq, c.status == BatchStatus.PLANNED)
    before: Document | None = connection.execute(select(c.result).where(*mine)).scalar_one_or_none()
    connection.execute(update(schema.batches).where(*mine).values(**columns))
    return before


def fence(connection: Connection, lease: Lease) -> None:
    """Raise unless the lease is the current one, and keep it so until the transaction ends.

    Only the token decides: a lease that ran out, but that nobody took over, still excludes others here.
    """
    row = locked_pipeline(connection, lease.pipeline)
    if row is None or row.lease_token != lease.token:
        raise lease_lost(lease.pipeline, lease.owner, "somebody else took it over")
    if row.lease_owner is None:
        raise lease_lost(lease.pipeline, lease.owner, "it was given back")


def busy(pipeline: str, row: Row[Any]) -> BusyError:
    """Return the error for a request while another holder has the lease."""
    where = {"pipeline": pipeline, "holder": row.lease_owner, "since": row.lease_since, "until": row.lease_until}
    return BusyError(
        "ledger.busy", f"the pipeline is taken by {row.lease_owner!r}", where=where,
        hint="try again later; the lease of a holder that died ends at the time in until",
    )  # fmt: skip


def as_batch(row: Row[Any]) -> Batch:
    """Return a row as a batch."""
    return Batch.from_document(dict(row._mapping))


def newest_first(pipeline: str, kind: str | None = None) -> Select[Any]:
    """Return the query of a pipeline's batches, highest number first; of one kind, or of all if None."""
    query = select(schema.batches).where(schema.batches.c.pipeline == pipeline)
    if kind is not None:
        query = query.where(schema.batches.c.kind == kind)
    return query.order_by(schema.batches.c.seq.desc())


def last_batch(connection: Connection, pipeline: str) -> Batch | None:
    """Return the batch with the highest number, whatever its status."""
    row = connection.execute(newest_first(pipeline).limit(1)).one_or_none()
    return None if row is None else as_batch(row)


def store_tables(connection: Connection, pipeline: str, seq: int, tables: Mapping[str, Document | None]) -> None:
    """Write the new states of tables, and append each as a version."""
    if not tables:
        return
    c = schema.tables.c
    names = sorted(tables)
    connection.execute(delete(schema.tables).where(c.pipeline == pipeline, c.table_id.in_(names)))
    rows: list[dict[str, Any]] = [
        {"pipeline": pipeline, "table_id": n, "seq": seq, "document": _plain(tables[n])} for n in names
    ]
    connection.execute(insert(schema.table_versions), rows)
    current = [{**row, "state": row["document"].get("state")} for row in rows if row["document"] is not None]
    if current:
        connection.execute(insert(schema.tables), current)


def store_schema_changes(connection: Connection, pipeline: str, seq: int, changes: Sequence[Document]) -> None:
    """Append schema changes; one with a known id keeps its number and takes the new document."""
    if not changes:
        return
    c = schema.schema_changes.c
    known = set(connection.execute(select(c.id).where(c.pipeline == pipeline)).scalars())
    number = connection.execute(select(func.max(c.number)).where(c.pipeline == pipeline)).scalar() or 0
    fresh: dict[str, dict[str, Any]] = {}
    for change in changes:
        name = change["id"]
        if name in known:
            query = update(schema.schema_changes).where(c.pipeline == pipeline, c.id == name)
            connection.execute(query.values(document=_plain(change)))
            continue
        row = fresh.setdefault(name, {"pipeline": pipeline, "id": name, "number": number + len(fresh) + 1, "seq": seq})
        row["document"] = _plain(change)
    if fresh:  # at once: of thousands of tables each statement costs a millisecond
        connection.execute(insert(schema.schema_changes), list(fresh.values()))


def _plain(document: Document | None) -> dict[str, Any] | None:
    return None if document is None else dict(document)
