# SPDX-License-Identifier: Apache-2.0
"""Hold how far an engine is, as one line of its output."""

from __future__ import annotations

import json
from dataclasses import dataclass

from airflow_provider_cdc.core.plain_data import Document

TABLE_ROWS = 2_000  # a commit costs about as much as typing so many rows
_MARK = "progress "
_FIRST_GUESS = 5.0  # seconds of a step before which the rest of it is not guessed


@dataclass(frozen=True, slots=True)
class Progress(Document):
    """Hold how far a step is.

    :param step: name of the step.
    :param seconds: since it began.
    :param rows: that are done, of land records.
    :param all_rows: of the whole step; 0 where they cannot be known.
    :param tables: that are done, of ``all_tables``.
    """

    step: str
    seconds: float
    rows: int = 0
    all_rows: int = 0
    tables: int = 0
    all_tables: int = 0

    @property
    def share(self) -> float:
        """Return which part of the step is done, from 0 to 1."""
        every = self.all_rows + TABLE_ROWS * self.all_tables
        return min(1.0, (self.rows + TABLE_ROWS * self.tables) / every) if every else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Return a guess of the seconds until the step ends; None before there is anything to guess from."""
        share = self.share
        return self.seconds * (1 - share) / share if share and self.seconds >= _FIRST_GUESS else None

    def sentence(self) -> str:
        """Return the progress in words."""
        counts = []
        if self.all_tables:
            counts.append(f"{self.tables} of {self.all_tables} tables")
        if self.all_rows:
            rows = min(self.rows, self.all_rows)
            counts.append(f"{rows} of {self.all_rows} {'records' if self.step == 'land' else 'rows'}")
        left = self.seconds_left
        rest = [] if left is None else [f"about {left:.0f} s left"]
        return f"{self.step}: {', '.join([*counts, f'{self.seconds:.0f} s', *rest])}"

    def line(self) -> str:
        """Return the line of output that :meth:`of_line` understands."""
        return _MARK + json.dumps(self.document())

    @classmethod
    def of_line(cls, line: str) -> Progress | None:
        """Return the progress that a line of output states, None of any other line."""
        if not line.startswith(_MARK + "{"):
            return None
        try:
            return cls.from_document(json.loads(line.removeprefix(_MARK)))
        except (ValueError, TypeError):
            return None
