# SPDX-License-Identifier: Apache-2.0
"""Commit all tables of a batch in one request of a REST catalog: readers see them at one position, or none of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from airflow_provider_cdc.core.json_documents import json_bytes
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.iceberg.catalogs import UNKNOWN
from spark_jobs.sinks.iceberg.committing import Prepared
from spark_jobs.sinks.iceberg.table import COMMIT

_FILE = "commit.json"
_PATH = "transactions/commit"
_MISSING = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class Stage:
    """Takes the commits of one table, which the driver makes with those of the others.

    :param folder: of the lake.
    """

    storage: Storage
    folder: str

    def put(self, prepared: Prepared) -> None:
        """Take a commit."""
        self.storage.write_json(f"{self.folder}/{_FILE}", {"mark": prepared.mark, "change": prepared.document()})


class BatchCommit:
    """Makes the commits that tasks staged (``driver_side.StagedCommits``)."""

    together = True

    def __init__(self, catalog: Catalog, storage: Storage) -> None:
        self._catalog, self._storage = catalog, storage

    def commit(self, folders: Sequence[str], parallelism: int) -> list[Exception | None]:
        """Commit all tables in one request; what goes wrong is of each of them.

        :raises SinkError: ``sink.cannot``, the catalog has no such request.
        """
        staged = [self._storage.read_json(f"{folder}/{_FILE}") for folder in folders]
        commits = [one for one in staged if one is not None]
        problem = self._settled(commits) if commits else None
        return [None if one is None else problem for one in staged]

    def _settled(self, commits: Sequence[dict[str, Any]]) -> Exception | None:
        """Make the request, and look whether it went through where the answer leaves it open."""
        catalog = self._catalog
        content = json_bytes({"table-changes": [one["change"] for one in commits]})
        try:
            answer = catalog._session.post(catalog.url(_PATH), data=content)
        except UNKNOWN as error:
            return None if self._is_made(commits[0]) else _conflict(type(error).__name__)
        if answer.ok or self._is_made(commits[0]):
            return None
        if answer.status_code in _MISSING:
            raise SinkError(
                "sink.cannot",
                "the catalog cannot commit the tables of a batch at once",
                where={"catalog": str(catalog.uri), "status": answer.status_code},
                hint="set sink.commit to table; nothing was committed",
            )
        return _conflict(f"the catalog answered {answer.status_code}")

    def _is_made(self, one: dict[str, Any]) -> bool:
        """Return whether a table has its commit: one says for all."""
        name = one["change"]["identifier"]
        try:
            table = self._catalog.load_table((*name["namespace"], name["name"]))
        except UNKNOWN:
            return False
        return bool(table.properties.get(COMMIT) == one["mark"])


def _conflict(why: str) -> UnavailableError:
    return UnavailableError(
        "sink.commit_conflict",
        f"the tables of the batch were not committed: another writer was first, or the catalog failed ({why})",
        hint="run again; nothing of it is visible",
    )
