# SPDX-License-Identifier: Apache-2.0
"""Name who works on a pipeline: a try of an Airflow task, or anybody else by a free text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class TaskTry:
    """One try of one Airflow task instance.

    :param map_index: index of a mapped task, -1 of others.
    :param try_number: from 1; it grows with every retry and every clear.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1
    try_number: int = 1

    def __str__(self) -> str:
        index = f" [{self.map_index}]" if self.map_index >= 0 else ""
        return f"task {self.task_id}{index} of DAG {self.dag_id}, run {self.run_id}, try {self.try_number}"

    def follows(self, other: TaskTry | None) -> bool:
        """Return whether this is a later try of the same task instance: the other one has ended then."""
        if other is None:
            return False
        same = (self.dag_id, self.run_id, self.task_id, self.map_index)
        return same == (other.dag_id, other.run_id, other.task_id, other.map_index) and (
            self.try_number > other.try_number
        )

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    @staticmethod
    def from_columns(row: Mapping[str, Any], prefix: str = "") -> TaskTry | None:
        """Return the try in columns of a row; None where they are empty.

        :param prefix: begins the columns' names.
        """
        values = {name: row.get(prefix + name) for name in TASK_COLUMNS}
        return None if values["dag_id"] is None else TaskTry(**values)  # type: ignore[arg-type]

    @staticmethod
    def columns_of(owner: TaskTry | str | None, prefix: str = "") -> dict[str, Any]:
        """Return the columns' values of an owner; all None unless it is a task's try.

        :param prefix: begins the columns' names.
        """
        document = owner.document() if isinstance(owner, TaskTry) else {}
        return {prefix + name: document.get(name) for name in TASK_COLUMNS}


TASK_COLUMNS = ("dag_id", "run_id", "task_id", "map_index", "try_number")
"""Columns of a task's try; in ``cdc_pipelines`` they begin with ``lease_``."""

Owner = TaskTry | str
"""Who leases a pipeline; a text for whoever is not an Airflow task."""
