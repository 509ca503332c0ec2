# SPDX-License-Identifier: Apache-2.0
"""Say by which rule tables are named in a target, and so where the table of a name lies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_provider_cdc.core.config.sinks.names import NAMES
from airflow_provider_cdc.core.model.safe_names import safe_name
from spark_jobs.lake.storage import path_part


@dataclass(frozen=True, slots=True)
class NameRule:
    """The rule of one kind of target.

    :param names: ``exact``: as the source spells them; ``safe``: letters, digits and underscores, which every catalog
        takes.
    :param folds: whether the target knows no upper case.
    """

    names: str = "exact"
    folds: bool = False

    def stated(self, names: str | None) -> NameRule:
        """Return the rule with ``sink.names`` as a pipeline states it, None for the kind's own."""
        return replace(self, names=names or self.names)

    def name(self, name: str) -> str:
        """Return the name that a database or a table of the source has in the target."""
        if self.names == "safe":
            return safe_name(name)
        return name.lower() if self.folds else name

    def path(self, database: str, table: str) -> str:
        """Return the path, below the root, of the table of a name."""
        return f"{path_part(self.name(database))}/{path_part(self.name(table))}"

    def paths(self, database: str, table: str) -> tuple[str, ...]:
        """Return the paths that a name has under any rule that may have been stated, that of this one first."""
        every = (self, *(NameRule(names, folds) for names in NAMES for folds in (False, self.folds)))
        return tuple(dict.fromkeys(rule.path(database, table) for rule in every))

    def same(self, path: str) -> str:
        """Return a text that is equal for paths that the target takes for one."""
        return path.lower() if self.folds else path
