# SPDX-License-Identifier: Apache-2.0
"""Report that a table has to go back: its stored rows are not those that changes start from."""

from __future__ import annotations

from airflow_provider_cdc.core.errors import DataError


class RewindNeeded(DataError):
    """Report that changes arrived late, or that the stored rows lack what they are to be made of.

    :ivar position: the table has to go back behind it; empty where it starts from all that the change log has.
    """

    position = ""


def rewind_needed(table: str, what: str, position: str) -> RewindNeeded:
    """Return the error that lets a table go back behind a position.

    :param what: the changes that came late.
    """
    error = RewindNeeded(
        "apply.rewind_needed",
        what,
        where={"table": table},
        hint="the table goes back to before them and is resolved again",
    )
    error.position = position
    return error
