# SPDX-License-Identifier: Apache-2.0
"""No answer to the page shows a value of a row, a secret, or a character that controls a terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins import (
    batch_rows,
    equality_rows,
    needs,
    quarantine_rows,
    schema_change_rows,
    table_rows,
    timeline_rows,
)
from tests.airflow.page_ledger import HOSTILE, SECRET, VALUE
from tests.unit.plugins.page_rows import DAGS, NOW, page_of


def everything(connection: Connection) -> dict[str, Any]:
    """Return every answer about the filled ledger."""
    parts = {"before": None, "limit": 50}
    return {
        "page": page_of(connection, DAGS),
        "tables": table_rows.tables(connection, "shop", state=None, search="", offset=0, limit=50),
        "history": [
            table_rows.table_history(connection, "shop", name, **parts)
            for name in ("shop.orders", f"shop.{HOSTILE}", "shop.payments")
        ],
        "batches": batch_rows.batches(connection, "shop", DAGS, **parts),
        "schema": schema_change_rows.schema_changes(connection, "shop", **parts),
        "quarantine": quarantine_rows.quarantine(connection, "shop", before=None),
        "timeline": timeline_rows.timeline(connection, "shop", DAGS, NOW - timedelta(days=31), datetime.now(UTC)),
        "needs": needs.needs(connection, "shop", DAGS, "shop.yaml"),
        "equality": equality_rows.equality(connection, "shop"),
    }


def test_no_answer_has_a_row_value_a_secret_or_a_control_character(filled: Database) -> None:
    with filled.reading() as connection:
        answers = everything(connection)
    text = json.dumps(answers, ensure_ascii=False)
    assert "record.json_invalid" in text and "ADD COLUMN grade ENUM('…', '…') DEFAULT '…'" in text
    assert VALUE not in text and SECRET not in text
    # An id names its table in requests and is never shown; JSON escapes its control characters.
    for line in answers["tables"]["tables"]:
        line.pop("id")
    shown = json.dumps(answers, ensure_ascii=False)
    assert "\u202e" not in shown and "\\u001b[31m'" not in shown
