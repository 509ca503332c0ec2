# SPDX-License-Identifier: Apache-2.0
"""Say how the files of a table lie, and what a table states of itself for those who read or maintain it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airflow_provider_cdc.core.config.partition_rules import PartitionRule


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Hold what a rule asks of a table apart from its rows.

    :param properties: of the table, by their names in its format.
    :param cluster_by: columns in whose order rows are written; none for that of the key.
    :param partition_by: how its files are parted.
    """

    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    cluster_by: tuple[str, ...] = ()
    partition_by: tuple[PartitionRule, ...] = ()

    def unclustered(self, names: Collection[str]) -> str:
        """Return why the rows of a table are in the order of its key though a rule names another, else nothing.

        :param names: of the table's columns.
        """
        missing = [name for name in self.cluster_by if name not in names]
        if not missing:
            return ""
        return f"cluster_by: the table has no column {', '.join(missing)}, so rows are written in the order of its key"
