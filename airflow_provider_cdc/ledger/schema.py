# SPDX-License-Identifier: Apache-2.0
"""Define the tables of the ledger; their prefix allows other tables in the same database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = 8
"""Version of these tables; those of another one are refused."""

metadata = MetaData()

_NAME = Text()
_TIME = String(27)  # ISO, UTC, fixed length: texts compare as instants do
# 64 bits: PostgreSQL needs BIGINT for it, SQLite's one integer type has them.
_LONG = BigInteger().with_variant(Integer, "sqlite")
_DOCUMENT = JSON(none_as_null=True)


def _task_columns(prefix: str = "") -> list[Column[Any]]:
    """Return the columns of a ``TaskTry``; all are empty where no Airflow task works."""
    types = {"dag_id": Text, "run_id": Text, "task_id": Text, "map_index": Integer, "try_number": Integer}
    return [Column(prefix + name, kind) for name, kind in types.items()]


versions = Table(
    "cdc_version",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("ledger_id", String(32), nullable=False),  # created once with the tables; a backup keeps it
)

pipelines = Table(
    "cdc_pipelines",
    metadata,
    Column("name", _NAME, primary_key=True),
    Column("fingerprint", String(64)),
    # The token only grows: the holder of an older one has lost the lease, whatever the clocks say.
    Column("lease_token", _LONG, nullable=False),
    Column("lease_owner", Text),
    Column("lease_since", _TIME),
    Column("lease_until", _TIME),
    *_task_columns("lease_"),
    Column("lake", _DOCUMENT),  # identity of the lake that the newest batch was written to
    Column("announced_seq", _LONG),  # asset events were sent for the batches up to this one
)

batches = Table(
    "cdc_batches",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("seq", _LONG, primary_key=True, autoincrement=False),
    Column("kind", String(40), nullable=False),
    Column("status", String(20), nullable=False),
    Column("start", _DOCUMENT, nullable=False),
    Column("end", _DOCUMENT, nullable=False),
    Column("until", _TIME),
    Column("cut_at", _TIME),  # of a batch that is not the last of its request
    Column("planned_at", _TIME, nullable=False),
    Column("committed_at", _TIME),
    Column("result", _DOCUMENT),
    Column("topics", _DOCUMENT),
    Column("lost", _DOCUMENT),
    *_task_columns(),  # who worked on it last
    Column("engine", String(20)),  # None of a batch without records, which starts none
    Column("application_id", Text),  # of the Spark application that was started last
    Column("started_at", _TIME),
    # How far the engine is, with the time and the lease's token: of a batch that nobody works on it says nothing.
    Column("progress", _DOCUMENT),
    CheckConstraint("status IN ('planned', 'committed', 'abandoned')", name="cdc_batches_status"),
    ForeignKeyConstraint(["pipeline"], ["cdc_pipelines.name"], name="cdc_batches_pipeline"),
)

tables = Table(
    "cdc_tables",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("table_id", Text, primary_key=True),
    Column("seq", _LONG, nullable=False),
    Column("document", _DOCUMENT, nullable=False),
    Column("state", String(20)),  # the document's member: finds the few parked tables of many without their documents
    Index("cdc_tables_state", "state", "pipeline"),
)

table_versions = Table(
    "cdc_table_versions",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("table_id", Text, primary_key=True),
    Column("seq", _LONG, primary_key=True, autoincrement=False),
    Column("document", _DOCUMENT),
)

# Entries of tables in a catalog as they were last seen to be. Additional: a ledger without it gets it, and a release
# that does not know it leaves it alone.
registered = Table(
    "cdc_registered",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("database", Text, primary_key=True),  # as the catalog names it, and so the table
    Column("table", Text, primary_key=True),
    Column("location", Text, nullable=False),
    Column("mark", String(64), nullable=False),  # digest of what the entry was made from
)

schema_changes = Table(
    "cdc_schema_changes",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("number", _LONG, nullable=False),
    Column("seq", _LONG, nullable=False),
    Column("document", _DOCUMENT, nullable=False),
    UniqueConstraint("pipeline", "number", name="cdc_schema_changes_order"),
)

# How the last attempt at a batch ended; written without a lease, since an attempt may fail before it has one.
attempts = Table(
    "cdc_attempts",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("at", _TIME, nullable=False),
    Column("code", Text, nullable=False),  # of its error, empty where it ended well
    *_task_columns(),
)

# What somebody saw of a pipeline's progress; written without a lease, also before the first batch.
progress = Table(
    "cdc_progress",
    metadata,
    Column("pipeline", _NAME, primary_key=True),
    Column("seen_at", _TIME, primary_key=True),
    Column("received", _TIME),
    Column("applied", _TIME),
    Column("lag_seconds", Float),
    Column("lag_records", _LONG),
)
