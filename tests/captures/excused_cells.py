# SPDX-License-Identifier: Apache-2.0
"""The cells of captures that messages carry differently than the database has them."""

from __future__ import annotations

import json
import lzma
from pathlib import Path


def differences(path: Path) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Read ``differences.jsonl.xz``: (database, table) -> cells that messages carry differently."""
    result: dict[tuple[str, str], set[tuple[str, str]]] = {}
    if path.exists():
        with lzma.open(path, "rt") as lines:
            for line in lines:
                item = json.loads(line)
                cell = (item["column"], json.dumps(item["key"], sort_keys=True))
                result.setdefault((item["db"], item["table"]), set()).add(cell)
    return result
