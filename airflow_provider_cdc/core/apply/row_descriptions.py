# SPDX-License-Identifier: Apache-2.0
"""Read what rows say of their columns, by the names that the table's columns have."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from airflow_provider_cdc.core.formats.contract import AdjustsNames, Description, Format
from airflow_provider_cdc.core.timeline.timeline import TableTimeline


@dataclass(slots=True)
class RowDescriptions:
    """Descriptions of one table's rows; each text is read once for each schema version."""

    timeline: TableTimeline
    wire: Format
    _read: dict[tuple[str, int], Description] = field(default_factory=dict)

    def of(self, text: str, version: int) -> Description:
        """Return what a row says of itself.

        :param version: schema version of the row, whose columns may be called otherwise in it.
        """
        mark = text, version
        if mark not in self._read:
            said = self.wire.describe(text)
            self._read[mark] = self._by_columns(said, version) if isinstance(self.wire, AdjustsNames) else said
        return self._read[mark]

    def leaves_out(self, name: str) -> bool:
        """Return whether a name of a row stands for a column that the table is to be without."""
        if self.timeline.leaves_out(name) or not isinstance(self.wire, AdjustsNames):
            return self.timeline.leaves_out(name)
        spelt = (spelling for pattern in self.timeline.left_out for spelling in self.wire.spellings(pattern))
        return any(fnmatchcase(name.lower(), spelling.lower()) for spelling in spelt)

    def hint(self, version: int) -> str:
        """Return what to do where names that the format cannot spell may be why rows have other columns."""
        if not isinstance(self.wire, AdjustsNames):
            return ""
        known = self._columns(version)
        return "" if all(map(self.wire.can_spell, known)) else f"; {self.wire.adjusted_names_hint}"

    def _by_columns(self, said: Description, version: int) -> Description:
        assert isinstance(self.wire, AdjustsNames)
        columns = self.wire.columns_of(said.names, self._columns(version), self.timeline.unwritten)
        if not columns:
            return said
        details = said.details and {columns.get(name, name): detail for name, detail in said.details.items()}
        return replace(
            said,
            names=tuple(columns.get(name, name) for name in said.names),
            key=said.key and tuple(columns.get(name, name) for name in said.key),
            details=details,
            members={column: name for name, column in columns.items()},
        )

    def _columns(self, version: int) -> list[str]:
        return [column.name for column in self.timeline.versions[version].schema.columns_in_rows]
