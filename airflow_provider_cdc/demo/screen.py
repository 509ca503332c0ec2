# SPDX-License-Identifier: Apache-2.0
"""Print the demo's table, which grows by a line with every run."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_cdc.reporting.screen import Screen

WIDTHS = (6, 8, 9, 8, 8, 8, 9, 7, 8)
HEAD = ("until", "records", "snapshot", "insert", "update", "delete", "truncate", "tables", "seconds")


class DemoScreen(Screen):
    """A screen with the demo's table."""

    def head(self) -> None:
        """Print the table's head."""
        self.line(_cells(HEAD) + "  equal to the database")
        self.line(_cells(["-" * len(name) for name in HEAD]) + "  ---------------------")

    def row(self, cells: Sequence[object], verdict: str) -> None:
        """Print one line of the table."""
        self.line(f"{_cells(cells)}  {verdict}")


def _cells(cells: Sequence[object]) -> str:
    return " ".join(str(cell).rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
