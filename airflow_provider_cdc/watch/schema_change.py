# SPDX-License-Identifier: Apache-2.0
"""Condition: a schema change that no batch has read waits in the log."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.watch.condition import Answer, Condition, name_some
from airflow_provider_cdc.watch.lag import Applied, applied_offsets

if TYPE_CHECKING:
    from airflow_provider_cdc.ledger import Ledger

KINDS = ("destructive", "unknown", "barrier", "mapping")
_SHOWN = 50

Changes = list[dict[str, Any]]


class SchemaChangeCondition(Condition[Applied, Changes]):
    """A schema change of some kinds that no batch has read waits in the log.

    :param kinds: kinds that count, as ``batch.coming_ddl`` names them.
    :param tables: names ``database.table`` that count; None for all. A change whose table is not known always counts.
    """

    reads_ledger = True
    reads_log = True

    def __init__(
        self,
        pipeline: CdcPipeline,
        kinds: Sequence[str] = ("destructive", "unknown"),
        tables: Sequence[str] | None = None,
    ) -> None:
        super().__init__(pipeline)
        checks = Checks()
        if checks.texts("kinds", kinds, least=1):
            for kind in kinds:
                checks.choice("kinds", kind, KINDS)
        if tables is not None:
            checks.texts("tables", tables, least=1)
        if getattr(pipeline.source, "schema_topic", None) is None:
            checks.problem("source.schema_topic", "only a topic of their own shows schema changes before a batch")
        if checks.problems:
            raise ConfigurationError(checks.problems, where={"pipeline": pipeline.name})
        self.kinds = list(kinds)
        self.tables = None if tables is None else list(tables)

    def stored(self, ledger: Ledger) -> Applied:
        """Read what is applied."""
        return applied_offsets(ledger, self.pipeline.name)

    def seen(self, log: SourceLog, stored: Applied | None) -> Changes:
        """Read the schema changes behind what is applied."""
        from airflow_provider_cdc.batch.coming_ddl import coming_ddl

        assert stored is not None
        ends = log.ends([str(self.pipeline.source.schema_topic)])
        start = {topic: {**lows, **stored.offsets.get(topic, {})} for topic, lows in ends.lows.items()}
        return coming_ddl(self.pipeline, log, start, ends.highs) or []

    def log_key(self, stored: Applied | None) -> Hashable:
        """Return what decides the changes."""
        return "ddl", self.pipeline.name, stored and stored.seq, super().log_key(stored)

    def judge(self, stored: Applied | None, seen: Changes | None) -> Answer:
        """Return whether a change that counts is among them."""
        assert seen is not None
        waiting = [change for change in seen if self._counts(change)]
        document = {"changes": waiting[:_SHOWN], "total": len(waiting)}
        kinds = " or ".join(self.kinds)
        if not waiting:
            return Answer(False, f"no {kinds} schema change waits; {len(seen)} of other kinds or tables do", document)
        listed = name_some([f"{change['kind']} of {change['table'] or 'an unknown table'}" for change in waiting])
        return Answer(True, f"{len(waiting)} schema changes wait: {listed}", document)

    def _counts(self, change: dict[str, Any]) -> bool:
        mine = self.tables is None or change["table"] is None or change["table"] in self.tables
        return mine and change["kind"] in self.kinds
