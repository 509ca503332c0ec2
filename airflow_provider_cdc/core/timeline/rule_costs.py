# SPDX-License-Identifier: Apache-2.0
"""Say what it costs to make a table again for rules that are others now."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from airflow_provider_cdc.core.plain_data import Document
from airflow_provider_cdc.core.sizes import size_text


class Work(StrEnum):
    """Say how a table becomes what its rules say: by its metadata, from its stored rows, or from the change log."""

    METADATA = "metadata"
    ROWS = "rows"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class RuleCost(Document):
    """Hold what carrying out the changed rules of a table costs, as it was when they were looked at.

    :param at: when, ISO time.
    :param rows: of the table, None where its files do not say it; ``size`` bytes of its files.
    :param log_rows: changes that are read of the change log; ``log_size`` bytes of their row images in memory.
    :param is_whole: the change log has all rows that are read of it.
    :param still_shown: what older versions of the table show and the table no longer does.
    :param kept_out: columns of which the change log has values from before, and no new ones.
    :param lacking: columns of which it has no values from before.
    """

    at: str
    work: Work
    rows: int | None
    size: int | None
    log_rows: int = 0
    log_size: int = 0
    is_whole: bool = True
    still_shown: list[str] = field(default_factory=list)
    kept_out: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)

    def sentences(self, table: str) -> list[str]:
        """Return what people are to know before they decide.

        :param table: ``database.table``.
        """
        said = [self._work(table)]
        if self.still_shown:
            said.append(
                f"older versions of the table still show {', '.join(self.still_shown)}: "
                f"`airflow-cdc maintain PIPELINE.yaml --purge {table}` expires them"
            )
        if self.kept_out:
            said.append(
                f"the change log still has values of {', '.join(self.kept_out)} from before, until "
                "policy.log_retention; what is read from now on lacks them, so taking the rule back needs a snapshot"
            )
        if self.lacking:
            said.append(
                f"the change log has no values of {', '.join(self.lacking)} from before, so it needs a snapshot: "
                f"approve, then `airflow-cdc rebuild PIPELINE.yaml {table} --from snapshot`"
            )
        return said

    def _work(self, table: str) -> str:
        has = "" if self.rows is None else f" of {self.rows} rows"
        has += "" if self.size is None else f"{' in' if has else ' of'} {size_text(self.size)}"
        if self.work == Work.METADATA:
            return f"the names of columns of the table{has} change, and no row is written again"
        if self.work == Work.ROWS:
            return f"all rows of the table{has} are written again from the stored ones, the change log is not read"
        if not self.is_whole:
            return (
                "the change log no longer has all rows of the table, so it needs a snapshot: approve, then "
                f"`airflow-cdc rebuild PIPELINE.yaml {table} --from snapshot`"
            )
        log = f"{self.log_rows} changes ({size_text(self.log_size)} of row images) are read from the change log"
        return f"all rows of the table{has} are made again: {log}"
