# SPDX-License-Identifier: Apache-2.0
"""Tables of the design pages against the code that they describe."""

from __future__ import annotations

import re
from dataclasses import fields

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Format
from airflow_provider_cdc.core.model.change import Kind, Op
from airflow_provider_cdc.core.model.clock_position import PREFIX, WIDTHS
from airflow_provider_cdc.core.model.position import FILE_DIGITS, GENERATION_DIGITS, POS_DIGITS, ROW_DIGITS
from tests.architecture.pages import DOCS, text_of

DESIGN = DOCS / "design"


def first_cells(text: str, heading: str) -> list[str]:
    """Return the words in backticks of the first column of the table that follows a row of headings."""
    table = text.partition(f"\n{heading}\n")[2].partition("\n\n")[0]
    assert table, heading
    return [word for row in table.splitlines()[1:] for word in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_the_change_record_is_described_column_by_column() -> None:
    page = text_of(DESIGN / "change-record.md")
    assert first_cells(page, "| column | Arrow type | meaning |") == CHANGE_SCHEMA.names
    assert [word for word in (*Kind, *Op) if f"`{word}`" not in page] == []
    assert set(first_cells(page, "| kind | set in addition to the origin |")) == set(Kind)


def test_every_attribute_of_a_format_is_described() -> None:
    page = text_of(DESIGN / "change-record.md")
    assert set(first_cells(page, "| attribute | meaning |")) == set(Format.__annotations__)


def test_the_state_of_a_table_is_described_field_by_field() -> None:
    page = text_of(DESIGN / "table-states.md")
    assert set(first_cells(page, "| field | meaning |")) == {one.name for one in fields(TableState)}


def test_the_widths_of_positions_are_those_of_the_code() -> None:
    page = text_of(DESIGN / "positions-and-order.md")
    exact = re.findall(r"(\d+) digits\n", page.partition("## Positions by clock")[0])
    assert sorted(map(int, exact)) == sorted((GENERATION_DIGITS, FILE_DIGITS, POS_DIGITS, ROW_DIGITS))
    clock = page.partition(f"\n{PREFIX}.<tool time ms>")[2].splitlines()[1]
    assert [int(width) for width in re.findall(r"\d+", clock)] == list(WIDTHS)
