# SPDX-License-Identifier: Apache-2.0
"""Result of a check of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_SHOWN = 50


@dataclass(frozen=True)
class CheckResult:
    """Result of one check.

    :param seen: what was seen, ``expected`` what should have been; never a value of a row.
    :param tables: tables that do not pass.
    """

    check: str
    passed: bool
    seen: str
    expected: str
    tables: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "check": self.check,
            "passed": self.passed,
            "seen": self.seen,
            "expected": self.expected,
            "tables": self.tables[:_SHOWN],
            "tables_total": len(self.tables),
        }

    def __str__(self) -> str:
        return f"{self.check}: {self.seen}, expected {self.expected}"
