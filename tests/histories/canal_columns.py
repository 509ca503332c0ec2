# SPDX-License-Identifier: Apache-2.0
"""Write rows of canal-json with the columns that they have."""

from __future__ import annotations

from tests.histories import canal_rows as canal
from tests.histories.records import Record


def canal_row(millis: int, op: str, image: dict[str, int], old: dict[str, int] | None = None) -> Record:
    """Return a row of table t as Canal's flat JSON, with the types of its columns."""
    data = [{name: str(value) for name, value in image.items()}]
    was = None if old is None else [{name: str(value) for name, value in old.items()}]
    types = {"mysqlType": dict.fromkeys(image, "int"), "sqlType": dict.fromkeys(image, 4)}
    return canal.record(millis, {"type": op, "data": data, "old": was, "pkNames": ["id"], **types})
