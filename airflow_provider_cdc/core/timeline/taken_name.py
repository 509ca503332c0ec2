# SPDX-License-Identifier: Apache-2.0
"""Hold that a table took the name of another one."""

from __future__ import annotations

from typing import NamedTuple

from airflow_provider_cdc.core.model.schema import TableName


class TakenName(NamedTuple):
    """Hold that a table took the name of another one: its rows are known if rows of it were read before.

    :param former: the names that it had before.
    :param displaced: id of the table that had the name before, None if it existed before the log.
    :param reason: what to say where no row of it was read.
    """

    position: str
    former: tuple[TableName, ...]
    displaced: str | None
    reason: str
