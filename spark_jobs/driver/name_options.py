# SPDX-License-Identifier: Apache-2.0
"""Keep tables from wrong names: by an option of the source that changed, or that records contradict."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.stated import stated_changes
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import Manifest
from spark_jobs.sinks.contract import Sink, Stored

_RESOLVED = "lower_case_table_names"  # acts on names that the change log has as the records have them
_LANDED = "tenant"  # acts on names as records are read: the change log has its outcome
_NAMING = (_RESOLVED, _LANDED)
_SHOWN = 3  # tables that an error names


def name_options(job: JobDocument) -> dict[str, str]:
    """Return the options of a job's source that decide names of tables."""
    return {name: job.format_options[name] for name in _NAMING if name in job.format_options}


def demand_same_names(job: JobDocument, history: History, sink: Sink[Stored]) -> None:
    """Refuse options under which a table that holds rows would have another name than in the batches before.

    Tables without rows take the name that they have now: so an option that was forgotten may be stated. Under another
    tenant every table counts: which names records had before is in no log.

    :raises DataError: ``source.names_changed``.
    """
    before, present = history.name_options(), name_options(job)
    if before is None or before == present:
        return
    known = [*stated_changes(job.tables), *(SchemaChange.from_document(change) for change in job.schema_changes)]
    others = {name: value for name, value in job.format_options.items() if name not in _NAMING}
    was, now = (
        build_timeline(known, Server.of({**others, **options}), AskedChanges(history.asked())).tables
        for options in (before, present)
    )
    renamed = []
    for state in job.states:
        old, new = was.get(state.table_id), now.get(state.table_id)
        if old is None or state.version is None or state.state == TableStatus.DROPPED:
            continue
        moved = new is None or (new.last_name, new.dropped_at) != (old.last_name, old.dropped_at)
        if moved or before.get(_LANDED) != present.get(_LANDED):
            target = sink.open(job.at(state.location))
            if target.exists and not target.is_empty():
                renamed.append(str(old.last_name))
    if renamed:
        changed = ", ".join(
            f"{name}: {before.get(name, 'not stated')} before, {present.get(name, 'not stated')} now"
            for name in _NAMING
            if before.get(name) != present.get(name)
        )
        raise DataError(
            "source.names_changed",
            f"an option of the source changed ({changed}): tables that hold rows would have other names, and new ones "
            f"without their rows take their place. There are {len(renamed)}: {printable(', '.join(renamed[:_SHOWN]))}",
            where={"pipeline": job.pipeline},
            hint="state source.options as before, and nothing changes; if the new value is right, read the log from "
            "its beginning under another pipeline name and an empty root. Nothing was applied",
        )


def demand_lower_case(job: JobDocument, landed: Manifest) -> None:
    """Refuse ``lower_case_table_names: 1`` where rows have names that such a server never stores.

    Statements, and a TRUNCATE, come with names as they were typed.

    :raises DataError: ``source.option_contradicted``.
    """
    if not Server.of(job.format_options).lower_case_names:
        return
    names = {f"{group.database}.{group.table}" for group in landed.groups if group.rows > len(group.clears)}
    typed = sorted(name for name in names if any("A" <= letter <= "Z" for letter in name))
    if typed:
        raise DataError(
            "source.option_contradicted",
            f"rows of {printable(', '.join(typed[:_SHOWN]))} have names with upper-case letters, which a server with "
            "lower_case_table_names: 1 never stores",
            where={"pipeline": job.pipeline},
            hint="state source.options.lower_case_table_names as the server has it; nothing was applied",
        )
