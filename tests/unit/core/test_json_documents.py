# SPDX-License-Identifier: Apache-2.0
"""Documents mean the same whatever their size, and whichever library reads and writes them."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from importlib import import_module
from typing import Any

import pytest

from airflow_provider_cdc.core.json_documents import json_bytes, json_data, json_text


class Status(StrEnum):
    DONE = "done"


VALUES = [
    None,
    {"a": [1, -0.0, 1.5, 2**63, -(10**30), True], "größe": '\x00"\\\u2028😀'},
    "\ud800",
    {"status": Status.DONE, "pair": (1, "x")},
]


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("padding", [0, 2 << 20], ids=["small", "large"])
def test_what_is_written_is_read_as_the_standard_library_reads_it(value: Any, padding: int) -> None:
    document = {"value": value, "padding": "x" * padding}
    assert json_data(json_bytes(document)) == json.loads(json.dumps(document))
    assert json_data(json.dumps(document).encode()) == json.loads(json.dumps(document))


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}}', b"[1e400", b"\xff", b'"' + b"x" * (2 << 20)])
def test_what_is_no_document_is_a_value_error(content: bytes) -> None:
    for text in (content, content + b" " * (2 << 20)):
        with pytest.raises(ValueError, match=r"\S"):
            json_data(text)


def test_numbers_beyond_doubles_are_read_as_the_standard_library_reads_them() -> None:
    assert json_data(b"[1e400," + b" " * (2 << 20) + b"1]") == [float("inf"), 1]


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("loaded", [True, False])
def test_texts_say_the_same_whether_msgspec_is_loaded(
    value: Any, loaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loaded:
        import_module("msgspec")
    else:
        monkeypatch.delitem(sys.modules, "msgspec", raising=False)
    assert json.loads(json_text(value)) == json.loads(json.dumps(value))
