# SPDX-License-Identifier: Apache-2.0
"""Hold the result of a check, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.printable import printable


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    :param ok: None where it does not matter.
    :param message: the present state.
    :param hint: what to do about it.
    """

    check: str
    ok: bool | None
    message: str
    hint: str = ""

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"check": self.check, "ok": self.ok, "message": self.message, "hint": self.hint}


def checked(check: str, ask: Callable[[], str]) -> Finding:
    """Return the finding of a question: the state that it returns, or the problem that it raises."""
    try:
        return Finding(check, True, ask())
    except CdcError as error:
        return Finding(check, False, error.headline, error.hint or "correct the pipeline or its connection")
    except OSError as error:
        return Finding(check, False, str(error), "check the path and the rights on it")


def verdict(findings: Iterable[Finding]) -> tuple[bool, str]:
    """Return for the test button of a connection's form whether nothing failed, and the findings."""
    looked = list(findings)
    lines = [f"{one.check}: {one.message}" + (f" -> {one.hint}" if one.hint and not one.ok else "") for one in looked]
    return all(one.ok is not False for one in looked), printable("; ".join(lines))
