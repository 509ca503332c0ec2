# SPDX-License-Identifier: Apache-2.0
"""Say of every option what a change of it means for the tables that a pipeline has already.

A new policy, rule of a table, or option of a format is added here: a test fails until it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class OptionKind(StrEnum):
    """Say what a change of an option means.

    ``layout``: columns get other types, or the structure that rows lie under is another one. Tables with such columns
    are made again from the change log.
    ``reading``: values of the change log are read otherwise. Whether the option was wrong, or the tool writes otherwise
    from now on, only an operator knows: tables with such columns are parked until a rebuild, or until it is taken back.
    ``log``: what the change log has of earlier batches does not go together with what comes. Tables are parked until
    it is taken back.
    ``records``: records are read otherwise from now on; what was read before stays as it was read.
    ``names``: statements and records mean other tables.
    ``course``: which changes are carried out, and which wait, from now on.
    ``work``: how fast or where the work is done, and how files lie.
    """

    LAYOUT = "layout"
    READING = "reading"
    LOG = "log"
    RECORDS = "records"
    NAMES = "names"
    COURSE = "course"
    WORK = "work"


POLICIES: Mapping[str, OptionKind] = {
    "tinyint1_as_boolean": OptionKind.LAYOUT,
    "zero_dates": OptionKind.LAYOUT,
    **dict.fromkeys(
        (
            "on_add_column",
            "on_cascade",
            "on_contradiction",
            "on_convert_column",
            "on_create_table",
            "on_drop_column",
            "on_drop_table",
            "on_failover",
            "on_key_change",
            "on_missing_create",
            "on_rename_column",
            "on_rename_table",
            "on_rule_change",
            "on_truncate",
            "on_unseen_ddl",
            "on_widen_column",
            "quarantine_limit",
            "verify",
        ),
        OptionKind.COURSE,
    ),
    **dict.fromkeys(
        (
            "apply_bytes",
            "batch_records",
            "bucket_rows",
            "chunk_records",
            "ddl_grace_seconds",
            "engine",
            "land_deadline_seconds",
            "lease_seconds",
            "log_retention",
            "parallelism",
            "reader",
            "spark_writer_bytes",
            "target_file_bytes",
            "writer",
        ),
        OptionKind.WORK,
    ),
}
"""Kinds by key of ``policy``; those of ``tables.<database.table>`` that have such a name are the same."""

TABLE_RULES: Mapping[str, OptionKind] = {
    "create": OptionKind.LAYOUT,
    "exclude_columns": OptionKind.LAYOUT,
    "columns": OptionKind.LAYOUT,
    "filter": OptionKind.LAYOUT,
    "mode": OptionKind.LAYOUT,
    "before": OptionKind.LAYOUT,
    "track": OptionKind.LAYOUT,
    "soft_delete_days": OptionKind.WORK,
    "cluster_by": OptionKind.WORK,
    "partition_by": OptionKind.COURSE,
    "properties": OptionKind.WORK,
}
"""Kinds of the other rules of a table."""

FORMAT_OPTIONS: Mapping[str, OptionKind] = {
    **dict.fromkeys(("explicit_defaults_for_timestamp", "server", "session_time_zone"), OptionKind.LAYOUT),
    **dict.fromkeys(
        (
            "bigint.unsigned.handling.mode",
            "binary.handling.mode",
            "decimal.handling.mode",
            "interval.handling.mode",
            "text_as_base64",
            "time.precision.mode",
            "timezone",
        ),
        OptionKind.READING,
    ),
    "binlog_row_image": OptionKind.COURSE,
    "connector": OptionKind.LOG,
    "null_in_both": OptionKind.LOG,
    "sequenceEnabled": OptionKind.LOG,
    **dict.fromkeys(
        (
            "absent_symbols",
            "add.*",
            "connectors",
            "dbType",
            "ddl_table",
            "delete.*",
            "dialect",
            "drop.tombstones",
            "field.*",
            "framing",
            "heartbeat_table",
            "null_symbols",
            "operation.*",
            "schema",
            "schema_file",
            "unavailable.value.placeholder",
        ),
        OptionKind.RECORDS,
    ),
    **dict.fromkeys(("default_database", "lower_case_table_names", "tenant"), OptionKind.NAMES),
}
"""Kinds by key of ``source.options``; a key that ends in ``.*`` stands for all that begin like it."""

DECIDING = tuple(name for name, kind in sorted(POLICIES.items()) if kind != OptionKind.WORK)
"""Policies that change the content of tables, or which of them wait."""


def kind_of_option(name: str) -> OptionKind | None:
    """Return the kind of an option of a format, None of one that is in no list."""
    family = name.partition(".")[0] + ".*"
    return FORMAT_OPTIONS.get(name) or FORMAT_OPTIONS.get(family)
