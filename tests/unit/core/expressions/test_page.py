# SPDX-License-Identifier: Apache-2.0
"""The page of expressions against the code: it lists all functions, and its examples are true."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.expressions.expression import parse
from airflow_provider_cdc.core.expressions.functions import FUNCTIONS
from airflow_provider_cdc.core.expressions.kinds import CASTS
from tests.architecture.pages import DOCS, blocks, text_of

PAGE = text_of(DOCS / "reference" / "expressions.md")
ROWS = re.findall(r"^\| `([A-Z_]+)\(.*\| `([^`]+)` \|$", PAGE, re.MULTILINE)


def test_the_page_lists_every_function() -> None:
    assert [name for name, _ in ROWS] == sorted(FUNCTIONS)


@pytest.mark.parametrize(("name", "example"), ROWS, ids=[name for name, _ in ROWS])
def test_the_examples_of_the_page_are_true(name: str, example: str) -> None:
    assert f"{name}(" in example
    values, failed = parse(example).evaluate({}, 1)
    assert (values.to_pylist(), failed) == ([True], None)


def test_the_page_names_every_type_of_cast() -> None:
    table = PAGE.partition("**CAST.**")[2].partition("\n\n## ")[0]
    assert [name for name in CASTS if name not in table] == []


def test_the_expressions_at_the_top_of_the_page_can_be_used() -> None:
    types = {"country": pa.string(), "test": pa.int8(), "first_name": pa.string(), "last_name": pa.string()}
    types["created_at"] = pa.timestamp("us")
    (block,) = blocks(PAGE, "sql")
    kinds = [parse(line).type(types) for line in block.splitlines()]
    assert kinds == [pa.bool_(), pa.string(), pa.date32()]


def test_the_error_on_the_page_is_the_one_of_the_code() -> None:
    (shown,) = blocks(PAGE, "text")
    with pytest.raises(ValueError) as caught:
        parse("country = 'DE' AND LOWR(name) = 'ann'")
    assert str(caught.value) == shown.rstrip("\n")
