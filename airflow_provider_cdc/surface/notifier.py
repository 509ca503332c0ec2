# SPDX-License-Identifier: Apache-2.0
"""Say in a notification what is wrong with a pipeline: tables, lag, quarantine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseNotifier

from airflow_provider_cdc.batch.arguments import PipelineLike, as_pipeline, file_of
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.printable import printable

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.ledger import Ledger

_SHOWN = 20


class CdcNotifier(BaseNotifier):
    """Send a text about a pipeline through another notifier, for ``on_failure_callback`` of a task.

    The text names the task and its error, what needs a person with what to do about it, as the page says it, the last
    known lag, where records are in quarantine, and the address of the page. It holds no values of rows. It reads only
    the ledger; where that does not answer, the text says so.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file.
    :param send: makes the notifier of a text, such as ``lambda text: SmtpNotifier(to="…", html_content=text)``, or
        sends the text itself.
    :param page: address of Airflow's UI, before the path of the page; the ``[api] base_url`` without it.
    """

    def __init__(self, pipeline: PipelineLike, send: Callable[[str], Any], *, page: str | None = None) -> None:
        super().__init__()
        self.pipeline = pipeline
        self.send = send
        self.page = page

    def notify(self, context: Context) -> None:
        """Send the text."""
        notifier = self.send(self.text(context))
        if isinstance(notifier, BaseNotifier):
            notifier(context)

    def text(self, context: Mapping[str, Any]) -> str:
        """Return the text for a task's context."""
        lines = [_subject(context)]
        try:
            pipeline = as_pipeline(self.pipeline)
            lines += _state(pipeline.ledger, pipeline.name, file_of(self.pipeline, pipeline.name))
            lines += [address for address in [self._address(pipeline.name)] if address]
        except (CdcError, OSError) as error:
            lines.append(f"The state of the pipeline is not known: {error}")
        return "\n".join(map(printable, lines))

    def _address(self, pipeline: str) -> str:
        from urllib.parse import urlsplit

        from airflow.providers.common.compat.sdk import conf

        from airflow_provider_cdc.plugins.page_address import page_address

        base = urlsplit(self.page or conf.get("api", "base_url", fallback="") or "")
        path = page_address(pipeline)
        return f"{base.scheme}://{base.netloc}{path}" if path and base.netloc else path


def _subject(context: Mapping[str, Any]) -> str:
    ti, error = context.get("ti"), context.get("exception")
    task = "A task" if ti is None else f"Task {ti.task_id} of DAG {ti.dag_id}, run {ti.run_id}"
    return f"{task}: {error}" if error else f"{task}."


def _state(ledger_name: str, pipeline: str, file: str) -> list[str]:
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger
    from airflow_provider_cdc.plugins.needs import need_lines, needs_in
    from airflow_provider_cdc.watch.health import health_of

    url = ledger_url(ledger_name)
    ledger = Ledger(url)
    health = health_of(ledger, pipeline)
    lines = [f"Pipeline {pipeline}: {len(health.tables)} tables, last batch {health.seq or 'none'}"]
    lines += [line for need in needs_in(url, pipeline, file) for line in need_lines(need)]
    return lines + _lag(ledger, pipeline) + _quarantine(ledger, pipeline)


def _lag(ledger: Ledger, pipeline: str) -> list[str]:
    """Return the lag, or that it is not known where nobody has looked for longer than usual."""
    from datetime import UTC, datetime

    from airflow_provider_cdc.observability.freshness import NEWEST, age_text, is_present

    now, samples = datetime.now(UTC), ledger.progress(pipeline, limit=NEWEST)
    if not samples:
        return []
    sample = samples[-1]
    seconds = "an unknown time" if sample.lag_seconds is None else f"{sample.lag_seconds:.0f} s"
    text = f"Lag at {sample.seen_at.isoformat()}: {seconds}, {sample.lag_records} records"
    if is_present([one.seen_at for one in samples], now):
        return [text]
    return [f"Lag: unknown, last seen {age_text(sample.seen_at, now)}. {text}"]


def _quarantine(ledger: Ledger, pipeline: str) -> list[str]:
    """Return where the records are that the last batch put into quarantine."""
    from airflow_provider_cdc.batch.result import quarantine_line, stored_result

    batch = ledger.last_committed(pipeline)
    result = None if batch is None else stored_result(batch)
    if result is None or not result.quarantined:
        return []
    shown = (result.quarantine or ())[:_SHOWN]
    return [f"Batch {result.seq} put {result.quarantined} records into quarantine", *map(quarantine_line, shown)]
