# SPDX-License-Identifier: Apache-2.0
"""Complete the row before an update where a format names only what changed."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.values.image_structs import with_members


def row_before(wire: Format, op: str | None, before: str | None, after: str | None) -> str | None:
    """Return the whole row before a change.

    :param before: as a change has it, and ``after``; None where there is none.
    """
    if not wire.updates_name_changes or op != "update" or before is None or after is None:
        return before
    return with_members(after.encode(), before.encode()).decode()
