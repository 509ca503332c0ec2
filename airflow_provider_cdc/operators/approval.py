# SPDX-License-Identifier: Apache-2.0
"""Ask a person about changes that tables wait for, and carry out the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowOptionalProviderFeatureException,
    BaseOperator,
)

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.connections.settings import default_lease_wait
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.operators.pipeline import airflow_errors, task_try
from airflow_provider_cdc.operators.repair import RepairOperator, not_for_all

try:
    from airflow.providers.standard.operators.hitl import HITLOperator
except (ImportError, AirflowOptionalProviderFeatureException):

    class HITLOperator(BaseOperator):  # type: ignore[no-redef]
        """Stand for what this Airflow lacks, so that the package loads."""

        def __init__(self, **kwargs: Any) -> None:
            raise AirflowFailException(
                "CdcApprovalOperator asks a person, which needs Airflow 3.1 or newer; without it decide with "
                "CdcApproveOperator or `airflow-cdc approve`"
            )


if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.timeline.asked_changes import AskedChange

_ASKED = "asked_changes"
_MOST = 50  # of one question
_POLL = 10.0


class CdcApprovalOperator(RepairOperator, HITLOperator):
    """Ask a person about the changes that tables wait for (``on_…: ask``), and carry out the answer.

    The question stands under *Required Actions* of Airflow (3.1 or newer), with each change's table, statement, policy
    and cost. The answer counts for the changes that it shows and no others. Where nothing waits, nobody is asked. No
    worker waits for the answer. Other runs of the pipeline are then waited for, for ``[cdc] lease_wait``; a try after
    that asks again about what still waits.

    ``Approve`` carries the changes out, ``Deny`` leaves them out for good (offered where all of them can be left out),
    ``Leave`` decides nothing: the tables go on waiting.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: ask about these tables alone, as ``database.table``; about all if empty. (templated)
    :param kwargs: also ``response_timeout``, ``defaults`` (the answer after it; without it the task fails then),
        ``assigned_users`` and ``notifiers`` of Airflow's ``HITLOperator``.
    """

    APPROVE, DENY, LEAVE = "Approve", "Deny", "Leave"

    template_fields: Sequence[str] = ("pipeline", "tables")

    def __init__(self, *, pipeline: PipelineLike, tables: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(
            pipeline=pipeline,
            subject="Changes of tables wait for a decision",
            options=[self.APPROVE, self.DENY, self.LEAVE],
            **kwargs,
        )
        self.tables = tables

    def execute(self, context: Context) -> dict[str, Any]:
        """Ask about what waits now."""
        from airflow_provider_cdc.batch.approvals import waiting_changes
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE
        from airflow_provider_cdc.ledger import Ledger

        with airflow_errors():
            pipeline = self.configured(context)
            waiting = waiting_changes(Ledger(ledger_url(pipeline.ledger)), pipeline.name)
        asked = [item for item in waiting if not self.tables or str(item.name) in self.tables][:_MOST]
        if not asked:
            self.log.info("nothing waits for a decision")
            return {"answer": None, "changes": []}
        if not all(item.policy in DENIABLE for item in asked):
            self.options = [self.APPROVE, self.LEAVE]
            self.defaults = [self.LEAVE] if self.defaults == [self.DENY] else self.defaults
        self.subject = f"{pipeline.name}: a decision about {len(asked)} change{'s' if len(asked) > 1 else ''}"
        self.body = question(asked)
        context["ti"].xcom_push(_ASKED, [[str(item.name), item.id] for item in asked])
        HITLOperator.execute(self, context)
        raise AssertionError("the question has been left to Airflow")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Carry out the answer."""
        response = HITLOperator.execute_complete(self, context, event)
        (answer,), user = response["chosen_options"], response.get("responded_by_user")
        ti = context["ti"]
        by = user["name"] if user else f"default of {ti.dag_id}.{ti.task_id}"
        asked = ti.xcom_pull(task_ids=ti.task_id, key=_ASKED, map_indexes=ti.map_index)
        self.log.info("%s by %s: %s", answer, printable(by), printable(", ".join(f"{t} {c}" for t, c in asked)))
        batches: list[int | None] = []
        names = {table for table, _ in asked}
        parked: dict[str, str] = {}  # of the tables that were decided about: others are no matter of this task
        with airflow_errors():
            pipeline = self.configured(context)
            for table, change in asked if answer != self.LEAVE else ():
                result = self._decide(context, pipeline, table, change, by, deny=answer == self.DENY)
                if result.error is not None:
                    raise result.error
                batches.append(result.seq)
                parked = {one.name: one.reason for one in result.parked or () if one.name in names}
        if parked:
            raise not_for_all(result, "; ".join(f"{name}: {reason}" for name, reason in parked.items()))
        return {"answer": answer, "by": by, "changes": asked, "batches": batches}

    def _decide(
        self, context: Context, pipeline: CdcPipeline, table: str, change: str, by: str, *, deny: bool
    ) -> BatchResult:
        """Carry out one decision; the person's answer is not given up because another run is at work."""
        from airflow_provider_cdc.batch.approvals import decide

        course: dict[str, Any] = {"say": self._say, "kill": self._stopper, "owner": task_try(context)}
        deadline = time.monotonic() + default_lease_wait().total_seconds()
        while True:
            self._stopper.check()
            try:
                return decide(pipeline, table, deny=deny, change=change, by=by, **course)
            except BusyError as error:
                if time.monotonic() > deadline:
                    raise AirflowException(printable(f"waited too long (lease_wait): {error}")) from None
                self.log.info("waiting: %s", printable(str(error)))
                time.sleep(_POLL)


def question(asked: Sequence[AskedChange]) -> str:
    """Return the Markdown of a question: blocks of code, so that no name or statement is read as markup."""
    blocks = []
    for item in asked:
        lines = [f"{item.name}: {item.policy}, change {item.id}", item.statement]
        lines += [] if item.cost is None else [f"as of {item.cost.at}:", *item.cost.sentences(str(item.name))]
        blocks.append("\n".join(f"    {printable(' '.join(line.split()))}" for line in lines))
    return "\n\n---\n\n".join(blocks)
