# SPDX-License-Identifier: Apache-2.0
"""The modes of stored tables: which rows one has. Each is a mirror but for what it says itself."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.apply.modes.append import Append
from airflow_provider_cdc.core.apply.modes.contract import TableMode
from airflow_provider_cdc.core.apply.modes.history import History
from airflow_provider_cdc.core.apply.modes.mirror import Mirror
from airflow_provider_cdc.core.apply.modes.soft_delete import SoftDelete
from airflow_provider_cdc.core.config.tables import MIRROR, TableRules
from airflow_provider_cdc.core.shapes.mode import ModeColumns

_ALL: tuple[TableMode, ...] = (Mirror(), SoftDelete(), Append(), History())
MODES: Mapping[str, TableMode] = {mode.name: mode for mode in _ALL}
"""By their name in ``tables.<name>.mode``."""


def mode_of(rules: TableRules, table: object) -> TableMode:
    """Return the mode of a table (``database.table`` or a TableName)."""
    rule = rules.rule(table)
    return MODES[rule.mode or MIRROR].of(rule)


def rows_of(mode: ModeColumns) -> TableMode:
    """Return what a mode says of rows; a table without rules knows a mirror's columns alone."""
    return mode if isinstance(mode, Mirror) else MODES[mode.name]
