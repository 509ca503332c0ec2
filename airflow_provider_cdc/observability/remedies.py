# SPDX-License-Identifier: Apache-2.0
"""Say of each error what it means for the tables, and what a person does about it: in words, commands, operators."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.printable import printable

_SHOWN = 5
"""So many tables are named in commands."""

RECORD = "TOPIC/PARTITION:OFFSET"
"""Stands for a record that a person has to name."""


@dataclass(frozen=True)
class Remedy:
    """Hold what an error means, and what to do.

    :param means: for the tables and those who read them, one or two sentences.
    :param do: the next step.
    :param commands: of ``airflow-cdc``, to be run in turn. ``{pipeline}`` is its file; ``{table}`` gives a command for
        each table, ``{tables}`` names all of them, ``{record}`` the record that is asked about, ``{dag}`` the DAG.
    :param operator: the same in a DAG, with the same names.
    """

    means: str
    do: str
    commands: tuple[str, ...] = ()
    operator: str = ""

    def command_lines(
        self, pipeline: str, tables: Sequence[str] = (), record: str = RECORD, dag: str = ""
    ) -> list[str]:
        """Return the commands for a pipeline and some tables; none where a name cannot be typed.

        :param pipeline: its file.
        :param tables: ``database.table`` of each.
        :param dag: id of the DAG that runs it; without it commands that name it are left out.
        """
        if not _can_be_typed(pipeline, *tables, record, dag):
            return []
        names = {"pipeline": shlex.quote(pipeline), "record": shlex.quote(record), "dag": shlex.quote(dag)}
        quoted = [shlex.quote(table) for table in tables[:_SHOWN]]
        lines = []
        for command in self.commands:
            if "{dag}" in command and not dag:
                continue
            if "{table}" in command:
                lines += [command.format(**names, table=table) for table in quoted]
            elif quoted or "{tables}" not in command:
                lines.append(command.format(**names, tables=" ".join(quoted)))
        return lines

    def operator_text(self, pipeline: str, tables: Sequence[str] = (), record: str = RECORD) -> str:
        """Return the operator for a pipeline and some tables, empty without one; parameters as of the commands.

        One that takes a single table names the first.
        """
        if not _can_be_typed(pipeline, *tables, record):
            return ""
        shown = list(tables[:_SHOWN])
        values = {"pipeline": pipeline, "table": shown[0] if shown else "", "tables": shown, "record": record}
        return self.operator.format(**{name: json.dumps(one, ensure_ascii=False) for name, one in values.items()})

    def document(
        self, pipeline: str, tables: Sequence[str] = (), record: str = RECORD, dag: str = ""
    ) -> dict[str, Any]:
        """Return plain JSON data, with the commands and the operator for a pipeline and some tables."""
        return {
            "means": self.means,
            "do": self.do,
            "commands": self.command_lines(pipeline, tables, record, dag),
            "operator": self.operator_text(pipeline, tables, record),
        }


def copyable(text: str, pipeline: str, table: str = "") -> str:
    """Return a reason or hint whose commands name the pipeline's file, and the table, so that they can be copied.

    :param pipeline: its file.
    :param table: ``database.table``, empty where the text is not of one.
    """
    for placeholder, name in (("PIPELINE.yaml", pipeline), ("DATABASE.TABLE", table)):
        if name and _can_be_typed(name):
            text = text.replace(placeholder, shlex.quote(name))
    return text


def _can_be_typed(*names: str) -> bool:
    """Return whether nothing in names changes how a terminal or a file shows them."""
    return all(printable(name) == name for name in names)


def remedy_of(code: str, reason: str = "") -> Remedy:
    """Return what to do about an error, or a state of a pipeline.

    :param code: empty where a table is unsettled without one.
    :param reason: why a table is unsettled.
    """
    fitting = (remedy for start, remedy in BEGINNINGS.items() if (code or reason).startswith(start))
    return REMEDIES.get(code) or next(fitting, _TABLE if reason else _TASK)


_STAYS = "The table stays at its last good state, and the change log collects what it misses: nothing is lost."
_NOTHING = "Nothing of the batch was applied, and nothing is lost: the next run reads the same records again."
_AGAIN = ("airflow-cdc sync {pipeline}",)
_SYNC = 'CdcSyncOperator(task_id="sync", pipeline={pipeline})'
_REBUILD = 'CdcRebuildOperator(task_id="rebuild", pipeline={pipeline}, tables={tables})'
_APPROVE = 'CdcApproveOperator(task_id="approve", pipeline={pipeline}, table={table})'

_rebuild = Remedy(
    f"Somebody changed, damaged or removed what lies at the table's location. {_STAYS}",
    "Restore the location from a backup and run again; or make the table again from the change log. Readers see the "
    "rows of before until the rebuild commits.",
    ("airflow-cdc rebuild {pipeline} {tables}",),
    _REBUILD,
)
_gone = Remedy(
    "What lies at the table's location is gone: who reads it finds nothing. The change log has its rows, and collects "
    "what comes meanwhile.",
    "Restore the location from a backup and run again; or make the table again from the change log.",
    ("airflow-cdc rebuild {pipeline} {tables}",),
    _REBUILD,
)
_snapshot = Remedy(
    "The log does not say what the rows of the table are now. The table stays at its last good state.",
    "Let the connector take an ad hoc snapshot of the whole table, read it, then rebuild the table from it. Or "
    "TRUNCATE and load the table again at the source, or take a full snapshot.",
    (
        "airflow-cdc rebuild {pipeline} {tables} --signal",
        "airflow-cdc sync {pipeline}",
        "airflow-cdc rebuild {pipeline} {tables} --from snapshot",
    ),
    'CdcRebuildOperator(task_id="rebuild", pipeline={pipeline}, tables={tables}, source="snapshot")',
)
_approve = Remedy(
    f"A change waits for a decision of a person. {_STAYS}",
    "Look at the change and at the source. Then approve it, or leave it out with --deny, where its kind allows that.",
    ("airflow-cdc approve {pipeline}", "airflow-cdc approve {pipeline} {table}"),
    _APPROVE,
)
_rules = Remedy(
    f"A rule of the pipeline does not fit the table. {_STAYS}",
    "Correct the rule in the pipeline's file. The next run tries the table again, also without new records.",
    _AGAIN,
    _SYNC,
)
_unfit = Remedy(
    f"Records or rows of the table could not be carried. {_STAYS}",
    "Look at them. Where DDL or an option was wrong, correct it and replay them, or repair them and replay the file. "
    "What cannot be carried at all is discarded: its rows stay as they are, and the table goes on with the next run.",
    (
        "airflow-cdc quarantine {pipeline} list",
        "airflow-cdc quarantine {pipeline} replay --tables {table}",
        "airflow-cdc quarantine {pipeline} discard --tables {table} --why REASON",
        "airflow-cdc sync {pipeline}",
    ),
)
_fault = Remedy(
    f"This is a fault of the provider. {_STAYS}",
    "Report it with the DDL of the table. The next run with records tries the table again.",
    _AGAIN,
    _SYNC,
)
_source = Remedy(
    f"The source does not answer. {_NOTHING}",
    "Check brokers, network and login from the workers. Airflow tries again by itself.",
    ("airflow-cdc doctor {pipeline}",),
    'CdcDoctorOperator(task_id="doctor", pipeline={pipeline})',
)
_settings = Remedy(
    f"The pipeline cannot work as it is written, or a connection is missing. {_NOTHING}",
    "Read the log of the task: it lists every problem. Correct the pipeline or the connection.",
    ("airflow-cdc doctor {pipeline}",),
    'CdcDoctorOperator(task_id="doctor", pipeline={pipeline})',
)
_login = Remedy(
    f"The source refuses the login of the connection, as after a change of the password. {_NOTHING}",
    "Correct login and password of the Airflow connection that the log of the task names; the test button of its form "
    "tries them. Then run again.",
    ("airflow-cdc doctor {pipeline}", *_AGAIN),
    _SYNC,
)
_lost = Remedy(
    "Records that no batch has read are gone from the log: the tables lack their changes.",
    "Take a new snapshot into a pipeline with another name. Or go on with what is left: the tables then differ from "
    "the source until their rows come again.",
    ("airflow-cdc plan {pipeline}", "airflow-cdc sync {pipeline} --accept-loss"),
)
_store = Remedy(
    f"Disk or object store of the lake failed. {_NOTHING}",
    "Check free space, rights and network. Airflow tries again by itself where that may help.",
    ("airflow-cdc doctor {pipeline}",),
    'CdcDoctorOperator(task_id="doctor", pipeline={pipeline})',
)
_lake = Remedy(
    "The lake is not the one that the ledger knows: it was copied, moved or mounted elsewhere. Nothing was written.",
    "Correct the root where it is wrong. To go on in the lake that is there, adopt it.",
    ("airflow-cdc adopt {pipeline}",),
)
_memory = Remedy(
    f"A worker ran out of memory or died. {_NOTHING}",
    "Give the workers more memory, lower policy.parallelism, or sync a smaller range first with --until.",
    _AGAIN,
    _SYNC,
)
_name = Remedy(
    f"The catalog cannot have the table under its name. {_STAYS}",
    "Set sink.names or target, exclude one of two tables, or rename one at the source. It goes on by itself then.",
    _AGAIN,
    _SYNC,
)

_ledger = Remedy(
    f"Somebody else worked on the pipeline, or the ledger's database did not answer. {_NOTHING}",
    "Airflow tries again by itself. If it goes on, check the ledger's database, and who holds the pipeline.",
    ("airflow-cdc ledger {pipeline}",),
)
_held = Remedy(
    f"Somebody else holds the pipeline. {_NOTHING}",
    "Look who it is. One who works is waited for. One who died loses it at the time that is shown, "
    "policy.lease_seconds after the last sign of life: run again then.",
    ("airflow-cdc ledger {pipeline}", *_AGAIN),
    _SYNC,
)
_silent = Remedy(
    f"Nothing proves that the log has everything up to the time of the run: the source is silent. {_NOTHING}",
    "Look whether the connector runs, and start it again. If the source may rest, let the connector send heartbeats, "
    "and set source.heartbeat_topic. Then run the DAG again.",
    ("airflow-cdc lag {pipeline}", *_AGAIN),
    _SYNC,
)

REMEDIES: dict[str, Remedy] = {
    "apply.approval_required": _approve,
    "shape.changed": _approve,
    "apply.schema_missing": Remedy(
        f"Rows have other columns than the table: their DDL has not arrived. {_STAYS}",
        "Check that source.topics and source.schema_topic include the topic with the DDL, then run again.",
        _AGAIN,
        _SYNC,
    ),
    **dict.fromkeys(("land.quarantine_exceeded", "apply.quarantine_exceeded"), _unfit),
    **dict.fromkeys(
        (
            *("apply.cascade_unknown", "apply.cascaded", "apply.cascaded_above", "apply.changes_missing"),
            *("apply.contradicted", "apply.key_unproven", "apply.order_unknown", "apply.row_not_found"),
            *(
                "apply.snapshots_alike",
                "apply.values_unlogged",
                "rebuild.files_outdated",
                "retention.log_expired",
                "shape.converted",
            ),
        ),
        _snapshot,
    ),
    "apply.made_otherwise": Remedy(
        f"An option that says how values are read is another one than when the rows were made. {_STAYS}",
        "Take the option back; or, if it was wrong before, make the table again from the change log.",
        ("airflow-cdc rebuild {pipeline} {tables}",),
        _REBUILD,
    ),
    **dict.fromkeys(
        (
            *("log.missing", "sink.changed_by_other", "sink.commit_unknown", "sink.file_missing"),
            *("sink.types_differ", "sink.unreadable"),
        ),
        _rebuild,
    ),
    "sink.missing": _gone,
    "sink.not_ours": Remedy(
        f"Something that this pipeline did not make lies at the table's location. {_STAYS}",
        "Move it away, or choose another root, then run again.",
        _AGAIN,
        _SYNC,
    ),
    "sink.refused": Remedy(
        f"A property, a constraint or a feature of the table in the lake forbids the commit. {_STAYS}",
        "Unset what the reason names, then run again.",
        _AGAIN,
        _SYNC,
    ),
    "sink.columns_refused": _name,
    **dict.fromkeys(("sink.partition", "sink.type", "schema.impossible_type"), _rules),
    **dict.fromkeys(("apply.fault", "schema.fault", "ddl.fault"), _fault),
    **dict.fromkeys(("apply.memory", "land.memory"), _memory),
    **dict.fromkeys(("kafka.slow", "kafka.stalled", "kafka.unavailable", "files.unavailable"), _source),
    **dict.fromkeys(("airflow.connection", "cache.full", "configuration", "sink.cannot"), _settings),
    **dict.fromkeys(("format.unknown", "kafka.not_allowed", "kafka.topic_unknown", "table.unknown"), _settings),
    **dict.fromkeys(("ledger_database.unknown", "source.names_changed"), _settings),
    **dict.fromkeys(("lake.missing", "lake.moved", "lake.other", "lake.unknown_batch"), _lake),
    **dict.fromkeys(("canal.login_refused", "kafka.login_refused"), _login),
    "ledger.busy": _held,
    "AirflowSensorTimeout": _silent,
    "source.new_generation": Remedy(
        f"The source's log began again, as after a failover or a reset. {_NOTHING}",
        "Find out whether the new server may lack changes that the old one had sent. If not, accept the new log; it "
        "cannot be taken back.",
        ("airflow-cdc approve {pipeline}", "airflow-cdc approve {pipeline} --new-generation {record}"),
        'CdcSyncOperator(task_id="sync", pipeline={pipeline}, new_generation={record})',
    ),
    "apply.change_refused": Remedy(
        f"A schema change came whose policy is fail. {_NOTHING}",
        "Look at the change. State another value of the policy for the table, then run again.",
        _AGAIN,
        _SYNC,
    ),
    "interrupted": Remedy(
        f"A worker died or was killed in the middle of a batch. {_NOTHING}",
        "The next run finishes the batch. Look whether the DAG runs: it may be paused.",
        ("airflow dags unpause {dag}", *_AGAIN),
        _SYNC,
    ),
    "stale": Remedy(
        "Nobody runs the pipeline: its tables fall behind the source.",
        "Look whether the DAG is paused, and let it go on; else whether it fails before its task, or waits for a free "
        "slot. A sync by hand brings the tables up to now, and does not wake the DAG.",
        ("airflow dags unpause {dag}", "airflow-cdc lag {pipeline}", *_AGAIN),
        _SYNC,
    ),
    "late": Remedy(
        "Readers get rows that are older than the schedule of the pipeline promises.",
        "Look what holds it back: a batch that is too large for its interval, a sensor that waits, or a slow engine.",
        ("airflow-cdc lag {pipeline}", "airflow-cdc plan {pipeline}"),
    ),
}
"""By code of an error, or by state of a pipeline without one."""

BEGINNINGS: dict[str, Remedy] = {
    "rows arrived but no CREATE TABLE": Remedy(
        f"The table is older than the log, so nothing says what its columns are. {_STAYS}",
        "State its CREATE TABLE as tables.<database.table>.create in the pipeline's file, then run again.",
        _AGAIN,
        _SYNC,
    ),
    **dict.fromkeys(("needs rebuild", "ddl.", "values."), _snapshot),
    **dict.fromkeys(("shape.", "mode."), _rules),
    "target.": _name,
    "engine.": _memory,
    **dict.fromkeys(("canal.", "registry.", "spark.", "postgres."), _source),
    **dict.fromkeys(("kafka.", "files."), _lost),
    "source.": Remedy(
        f"The batch has records of two logs, or it is not clear of which log they are. {_NOTHING}",
        "Let source.topics match the topics of one connector, and give the other a pipeline of its own.",
        ("airflow-cdc plan {pipeline}",),
    ),
    **dict.fromkeys(("sink.", "log."), _store),
    **dict.fromkeys(("ledger.", "lake.", "window.", "apply."), _ledger),
}
"""By beginning of a code, or of a reason without one; the first that fits."""

_TABLE = Remedy(_STAYS, "Read the reason. The next run with records of the table tries it again.", _AGAIN, _SYNC)
_TASK = Remedy(
    "The task failed. What is committed stays as it is.",
    "Read the log of the task. The page Error codes of the documentation explains each code.",
    ("airflow-cdc doctor {pipeline}",),
)
