# SPDX-License-Identifier: Apache-2.0
"""Say what an hour of the demo did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.demo.check import Verdict
from airflow_provider_cdc.demo.screen import HEAD, DemoScreen

_SHOWN_DDL = 8
_SHOWN_PROBLEMS = 5
_WIDTH = 100
_NO_DDL = re.compile(r"^\s*(SET|USE)\b", re.IGNORECASE)


def report(screen: DemoScreen, until: datetime, result: BatchResult, verdict: Verdict) -> None:
    """Print the line of an hour, its DDL, and what differs."""
    counts = [result.changes.get(name, 0) or "." for name in HEAD[2:7]]
    cells = [f"{until:%H:%M}", result.records, *counts, len(result.tables), f"{result.seconds:.1f}"]
    words = f"{verdict.equal} of {len(verdict.problems)} tables, {verdict.rows} rows"
    screen.row(cells, words if verdict.complete else f"NO: {words}")
    for text in shown(result.statements or ()):
        screen.line(f"       DDL  {text}")
    for name, problems in verdict.problems.items():
        for problem in problems[:_SHOWN_PROBLEMS]:
            screen.line(f"       DIFFERS  {name}: {problem}")


def shown(statements: Sequence[str]) -> list[str]:
    """Return DDL as the demo prints it: shortened, or counted by kind where it is many statements."""
    texts = [" ".join(text.split()) for text in statements if not _NO_DDL.match(text)]
    if len(texts) > _SHOWN_DDL:
        kinds = Counter(" ".join(text.split()[:2]).upper() for text in texts)
        return [", ".join(f"{count} × {kind}" for kind, count in kinds.items())]
    return [text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…" for text in texts]
