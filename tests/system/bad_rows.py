# SPDX-License-Identifier: Apache-2.0
"""Write rows that do not fit, and repair them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from tests.airflow.shop import Answer
from tests.cross_format.events import Row
from tests.system.ground import PLAIN, Ground, Story


def update(story: Story, table: str, **values: Any) -> None:
    story.record(Row("update", "shop", table, PLAIN, {**values, "v": "?"}, values))


def quarantine(ground: Ground, *arguments: str) -> Answer:
    return ground.site.command("quarantine", *arguments)


def waiting(ground: Ground, *arguments: str) -> list[dict[str, Any]]:
    answer = quarantine(ground, "list", *arguments)
    assert answer.code == 0, answer.err
    entries: list[dict[str, Any]] = answer.json
    return entries


def repaired(ground: Ground, change: Callable[[bytes], bytes]) -> str:
    """Export the quarantine, change each record's value, and return the file."""
    file = ground.site.folder / "records.jsonl"
    exported = quarantine(ground, "export", str(file))
    assert exported.code == 0, exported.err
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        line["value"] = base64.b64encode(change(base64.b64decode(line["value"]))).decode()
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(file)


GOOD, BAD = b"mysql-bin.000001", b"mysql-bin.9223372036854775808"
