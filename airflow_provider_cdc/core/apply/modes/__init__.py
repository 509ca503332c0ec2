# SPDX-License-Identifier: Apache-2.0
"""The modes of stored tables: which rows one has."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.apply.modes.contract import TableMode
from airflow_provider_cdc.core.apply.modes.mirror import Mirror
from airflow_provider_cdc.core.apply.modes.soft_delete import SoftDelete

_ALL: tuple[TableMode, ...] = (Mirror(), SoftDelete())
MODES: Mapping[str, TableMode] = {mode.name: mode for mode in _ALL}
"""By their name in ``tables.<name>.mode``."""
