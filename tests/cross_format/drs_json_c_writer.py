# SPDX-License-Identifier: Apache-2.0
"""A history as Huawei DRS writes it in its format JSON-C (docs/wire/huawei-drs.md 3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.cross_format import drs_json_writer

ZONE = "Asia/Shanghai"


class Writer(drs_json_writer.Writer):
    """Writes a deleted row into ``data``, and TIMESTAMP as local time text; that fractions stay is not documented."""

    format = "drs-json-c"
    options: Mapping[str, str] = {"timezone": ZONE}

    def _images(self, op: str, before: Any, after: Any) -> dict[str, Any]:
        return {"data": before, "old": None} if op == "delete" else {"data": after, "old": before}

    def _timestamp(self, text: str) -> str:
        seconds, dot, fraction = text.partition(".")
        moment = datetime.fromisoformat(seconds).replace(tzinfo=UTC).astimezone(ZoneInfo(ZONE))
        return moment.strftime("%Y-%m-%d %H:%M:%S") + dot + fraction
