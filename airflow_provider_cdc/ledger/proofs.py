# SPDX-License-Identifier: Apache-2.0
"""Record that tables were compared as a whole, where no batch says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, update

from airflow_provider_cdc.ledger import rows, schema
from airflow_provider_cdc.ledger.database import Database

Document = Mapping[str, Any]


class TableProofs:
    """The proofs in the states of tables, of one ledger.

    :param url: the ledger's.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def record(self, pipeline: str, proofs: Sequence[tuple[Document, Document]]) -> None:
        """Put proofs into the states that they are of; needs no lease: a state that is another one by now stays.

        The lake does not get them before the next batch of their tables.

        :param proofs: state document of a table as it was read, and document of its proof.
        """
        if not proofs:
            return
        c = schema.tables.c
        with self._database.writing() as connection:
            rows.locked_pipeline(connection, pipeline)  # no batch is committed meanwhile
            for state, proof in proofs:
                mine = (c.pipeline == pipeline, c.table_id == state["table_id"])
                if connection.execute(select(c.document).where(*mine)).scalar_one_or_none() == state:
                    connection.execute(update(schema.tables).where(*mine).values(document={**state, "proof": proof}))
