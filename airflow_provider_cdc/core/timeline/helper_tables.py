# SPDX-License-Identifier: Apache-2.0
"""Recognise the tables that tools for schema changes fill next to a table, and that take its name at the end."""

from __future__ import annotations

import re

from airflow_provider_cdc.core.model.schema import TableName

# names as the tools' own pages state them
_HELPERS = (
    ("gh-ost", re.compile(r"_.+_gh[oc]", re.IGNORECASE)),
    ("pt-online-schema-change or Spirit", re.compile(r"_+[^_].*_new", re.IGNORECASE)),
    ("Large Hadron Migrator", re.compile(r"lhmn_.+", re.IGNORECASE)),
    ("OnlineSchemaChange", re.compile(r"__osc_new_.+", re.IGNORECASE)),
    ("Alibaba's DMS", re.compile(r"tp_\d+_ogt_.+", re.IGNORECASE)),
    ("Vitess", re.compile(r"_vt_.+", re.IGNORECASE)),
    ("oak-online-alter-table", re.compile(r"__oak_.+", re.IGNORECASE)),
)
_MARK = "/* gh-ost */"


def tool_of(name: TableName, statement: str) -> str | None:
    """Return the tool whose helper a table is, by its name or the statement that renames it; None for other tables."""
    if _MARK in statement:
        return "gh-ost"
    return next((tool for tool, pattern in _HELPERS if pattern.fullmatch(name.table)), None)


def not_captured(name: TableName, statement: str) -> str | None:
    """Return what to say where the rows of a tool's helper are not in the log, None for other tables."""
    tool = tool_of(name, statement)
    if tool is None:
        return None
    return f"the helper table of {tool} is not captured: capture `{name.table}`, then rebuild"
