# SPDX-License-Identifier: Apache-2.0
"""Keep what entries the tables of a pipeline have in a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import delete, insert, select

from airflow_provider_cdc.ledger import rows, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.lease import Lease


class Entry(NamedTuple):
    """An entry of a table as it was last made.

    :param mark: digest of what it was made from.
    """

    location: str
    mark: str


class RegisteredTables:
    """The entries in catalogs, of one ledger.

    :param url: the ledger's.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def entries(self, pipeline: str) -> dict[tuple[str, str], Entry]:
        """Return the entries of a pipeline's tables by their database and name in the catalog."""
        c = schema.registered.c
        query = select(schema.registered).where(c.pipeline == pipeline).order_by(c.database, c.table)
        with self._database.reading() as connection:
            return {(row.database, row.table): Entry(row.location, row.mark) for row in connection.execute(query)}

    def record(self, lease: Lease, entries: Mapping[tuple[str, str], Entry | None]) -> None:
        """Record entries as they are now, by database and name; None that there is none.

        :raises BusyError: the lease is lost.
        """
        if not entries:
            return
        lease.check()
        c = schema.registered.c
        present = [
            {"pipeline": lease.pipeline, "database": database, "table": table, **entry._asdict()}
            for (database, table), entry in entries.items()
            if entry is not None
        ]
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            for database, table in entries:
                mine = (c.pipeline == lease.pipeline, c.database == database, c.table == table)
                connection.execute(delete(schema.registered).where(*mine))
            if present:
                connection.execute(insert(schema.registered), present)
