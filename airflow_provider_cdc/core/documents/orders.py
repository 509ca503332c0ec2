# SPDX-License-Identifier: Apache-2.0
"""Name what a job is to do instead of reading records, or in addition to that."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.plain_data import Document


@dataclass(slots=True)
class Replay(Document):
    """Rows of the change log that a batch takes again.

    :param tables: ``database.table`` of each; all tables if empty.
    :param since: source time of the first rows in microseconds since the epoch, None from the first on.
    :param until: source time behind the last rows, exclusive, None up to the last.
    """

    tables: list[str] = field(default_factory=list)
    since: int | None = None
    until: int | None = None

    def selects(self, database: str, table: str, oldest: int | None, newest: int | None) -> bool:
        """Return whether rows of a table between two source times are asked for; times that are unknown are."""
        if self.tables and f"{database}.{table}" not in self.tables:
            return False
        late = self.since is not None and newest is not None and newest < self.since
        return not late and not (self.until is not None and oldest is not None and oldest >= self.until)


class RebuildSource(StrEnum):
    """Say where the rows of a rebuilt table begin.

    With the table, or its last full snapshot; with an ad hoc snapshot; or with files that an operator provides.
    """

    CHANGE_LOG = "change_log"
    SNAPSHOT = "snapshot"
    FILES = "files"


@dataclass(slots=True)
class Rebuild(Document):
    """Tables that a batch resolves from the change log alone, whatever lies at their locations.

    :param tables: ``database.table`` of each.
    :param source: where their rows begin.
    :param since: source time at which the ad hoc snapshot was asked for, in microseconds since the epoch; None for the
        one that came after the rows became unknown. Of files a time up to which they hold every change.
    :param path: of files the Delta table, folder of parquet files or parquet file.
    :param compared: the rows are compared with those of the tables, and nothing is committed.
    """

    tables: list[str]
    source: RebuildSource = RebuildSource.CHANGE_LOG
    since: int | None = None
    path: str = ""
    compared: bool = False

    @staticmethod
    def of(tables: Sequence[str], source: str, since: int | None) -> Rebuild:
        """Return what an operator asks for.

        :param source: ``change_log``, ``snapshot``, or a path or URL of files; a relative one is below the present
            folder.
        :raises ConfigurationError: files without their time, or for several tables.
        """
        if source in (RebuildSource.CHANGE_LOG, RebuildSource.SNAPSHOT):
            return Rebuild(list(tables), RebuildSource(source), since)
        problems = [] if source else ["a rebuild from files needs their path"]
        if since is None:
            problems.append("a rebuild from files needs since: a time up to which they hold every change")
        if len(tables) != 1:
            problems.append("a rebuild from files is of one table")
        if problems:
            raise ConfigurationError(problems)
        path = source if "://" in source else os.path.abspath(source)
        return Rebuild(list(tables), RebuildSource.FILES, since, path.rstrip("/"))


class DecisionAction(StrEnum):
    """Say what an operator decided: to decode quarantined records again, or to do without them for good."""

    REPLAY = "replay"
    DISCARD = "discard"


@dataclass(slots=True)
class Decision(Document):
    """Hold what an operator decided about quarantined records.

    :param records: topic, partition and offset of each.
    :param repaired: of a replay the records to decode: topic, partition, offset, timestamp (milliseconds), and key,
        value and the headers' values in base64.
    :param by: who decided.
    :param at: when, ISO time.
    """

    action: DecisionAction
    records: list[list[Any]]
    repaired: list[dict[str, Any]] = field(default_factory=list)
    by: str = ""
    why: str = ""
    at: str = ""


@dataclass(slots=True)
class Look(Document):
    """Ask for the quarantine instead of a batch.

    :param contents: whether bytes and row images are asked for.
    """

    contents: bool = False


@dataclass(slots=True)
class Maintenance(Document):
    """Ask for maintenance instead of a batch: of the tables, or of the change log.

    :param target_file_bytes: size up to which small files are put together.
    :param keep_hours: files that a table no longer has are removed after so many hours.
    :param expire_through: newest batch that is old enough for its rows to be removed from the change log; 0 maintains
        the tables.
    :param at: ISO time that the ages of rows are counted from; empty where no row is too old.
    :param purge: ``database.table`` to maintain alone, so that no file but those of its newest version is left; empty
        for all tables.
    """

    target_file_bytes: int
    keep_hours: int
    expire_through: int = 0
    purge: str = ""
    at: str = ""


@dataclass(slots=True)
class Approval(Document):
    """Hold what an operator decided about a schema change.

    :param change: the change with its answer (document of ``AskedChange``).
    """

    change: dict[str, Any]


@dataclass(slots=True)
class Adoption(Document):
    """Ask for the lake at the root to be the pipeline's from now on."""


@dataclass(slots=True)
class Probe(Document):
    """Ask for a small table to be made, merged into and removed in the sink, instead of a batch."""


BatchOrder = Replay | Rebuild | Decision | Approval
"""What a batch carries out in addition to its records."""

Order = BatchOrder | Look | Maintenance | Adoption | Probe
