# SPDX-License-Identifier: Apache-2.0
"""Refuse to keep values out of the change log where a source, a format or the key needs them there."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from airflow_provider_cdc.core.config.source import Source
from airflow_provider_cdc.core.config.stated_tables import stated_create
from airflow_provider_cdc.core.config.tables import TableRule, TableRules
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.formats.contract import AdjustsNames, Format
from airflow_provider_cdc.core.formats.registry import open_format


def unlogged_problems(source: Source, rules: TableRules) -> Iterator[str]:
    """Yield what is wrong with ``columns.unlogged`` of any table, one sentence each.

    :param source: whose format and options are in order.
    """
    try:
        wire: Format | None = open_format(source.format, source.options)
    except CdcError:
        wire = None  # said elsewhere
    for name, rule in rules.tables.items():
        key = f"tables.{name}.columns.unlogged"
        if rule.unlogged_patterns and source.reader == "segments":
            yield f"{key}: a source of type {source.type} writes whole packets below _cdc; leave the columns out there"
        for pattern in rule.unlogged_patterns:
            if isinstance(wire, AdjustsNames) and {"?", "["} & set(pattern):
                yield f"{key}: {source.format} may write a character as several; state * in {pattern!r}"
            if column := _key_column(rule, pattern):
                yield f"{key}: {column} is of the key, which tells the rows apart; `mask: hash` hides it in the table"


def _key_column(rule: TableRule, pattern: str) -> str | None:
    """Return a column of the key that a pattern matches, as far as the statement of the table is stated."""
    create = None if rule.create is None else stated_create(rule.create)
    return next((c for c in create.key if fnmatchcase(c.lower(), pattern.lower())), None) if create else None
