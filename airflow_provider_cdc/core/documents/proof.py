# SPDX-License-Identifier: Apache-2.0
"""Keep how far the log has proved the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_cdc.core.plain_data import Document


@dataclass(frozen=True, slots=True)
class Proof(Document):
    """Say how far the changes that were compared with the rows that they found agree with them.

    It is part of the state of the rows: it goes back with a rewind, and begins again with them.

    :param until: newest position up to which all of them do, empty where nothing was compared yet. It moves on with the
        table, and stays where a contradiction is counted.
    :param whole_until: newest position at which all rows were compared with the change log and are equal, empty where
        that never was. The ledger alone knows it until the table's next batch.
    :param agreed_rows: rows that had all values that the log says, since the rows began. A row that several changes
        found counts for each, so there are not more different ones.
    :param contradictions: changes that did not find what the log says, by kind, since the rows began.
    :param loaded_until: Kafka's time of the newest row of a full load without an exact place in the log, in
        milliseconds; 0 without one. The load may have what changed before it was read.
    :param lacked: a row of a table without key that changes made and the load lacks, so it has none of the changes,
        unless one that is read later takes the row away: schema version and digest; empty without.
    :param contradicted: whether some of them came after ``whole_until``, so that ``until`` stays.
    """

    until: str = ""
    whole_until: str = ""
    agreed_rows: int = 0
    contradictions: dict[str, int] = field(default_factory=dict)
    contradicted: bool = False
    loaded_until: int = 0
    lacked: str = ""

    def after(
        self,
        position: str,
        contradictions: Mapping[str, int],
        agreed: int,
        *,
        compared: bool,
        loaded_until: int = 0,
        lacked: str = "",
    ) -> Proof:
        """Return the proof after a batch.

        :param position: newest that the rows went through.
        :param contradictions: of the batch, by kind.
        :param agreed: rows that had all values that the log says.
        :param compared: whether the batch compared its changes with the rows that they found, or none found any.
        :param loaded_until: as of this, and ``lacked`` where the batch found one.
        """
        counts = dict(self.contradictions)
        for kind, count in contradictions.items():
            counts[kind] = counts.get(kind, 0) + count
        contradicted = self.contradicted or bool(contradictions)
        until = position if compared and not contradicted else self.until
        agreed, lacked = self.agreed_rows + agreed, lacked or self.lacked
        return Proof(until, self.whole_until, agreed, counts, contradicted, loaded_until, lacked)

    def reach(self, position: str) -> str:
        """Return how far it reaches, for people: ``whole table``, ``yes``, a position, or nothing.

        :param position: newest that the rows went through.
        """
        if self.until != position:
            return f"until {self.until}" if self.until else ""
        return "whole table" if self.whole_until == position else "yes"

    def of_whole_table(self, position: str) -> Proof:
        """Return the proof once all rows were compared with the change log and are equal.

        :param position: newest that the rows went through.
        """
        return replace(self, until=position, whole_until=position, contradicted=False)
