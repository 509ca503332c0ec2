# SPDX-License-Identifier: Apache-2.0
"""Names from a log are hostile: nothing of them moves a cursor, turns text around or begins a line of its own."""

from __future__ import annotations

import json
import unicodedata

import pytest

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from airflow_provider_cdc.core.printable import printable, printable_lines

TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
FORGED = "x\nairflow-cdc: all is well\r\x1b[2J\x9b31m\u202egnp.exe\u2028y"


def test_no_control_bidirectional_or_separating_character_is_left() -> None:
    """By Unicode's categories; Cf but for the two joiners, without which Persian and Indic names cannot be written."""
    for code in range(0x110000):
        character = chr(code)
        kind = unicodedata.category(character)
        bidirectional = unicodedata.bidirectional(character) in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )
        if kind in ("Cc", "Zl", "Zp", "Cs") or bidirectional or character in "\u200e\u200f\u061c\u200b\ufeff":
            assert printable(character).isascii() and printable(character).startswith("\\"), hex(code)


@pytest.mark.parametrize("name", ["订单明细", "Größe", "заказы", "نام\u200cها", "a b`c\"d'\\n", "🛒"])
def test_names_of_all_languages_stay_as_they_are(name: str) -> None:
    assert printable(name) == name


def test_json_that_was_made_printable_means_the_same() -> None:
    data = {"name": FORGED + "\ud800\U000e0041", "more": ["表", "\x7f"]}
    text = printable(json.dumps(data, ensure_ascii=False))
    assert json.loads(text) == data
    assert text.encode()  # a lone surrogate has no UTF-8


def test_lines_of_several_are_indented() -> None:
    assert printable_lines("a\nb\x1b") == "a\n  b\\u001b"


def test_an_error_is_printable_and_its_document_keeps_the_name() -> None:
    error = CdcError("apply.fault", f"table {FORGED}", where={"table": FORGED}, hint=f"drop {FORGED}")
    lines = str(error).split("\n")
    assert all(line.startswith("  ") for line in lines[1:])
    assert not any(unicodedata.category(c) == "Cc" or c in "\u202e\u2028" for line in lines for c in line)
    assert error.document()["where"] == {"table": FORGED}
    assert str(CdcError.from_document(error.document())) == str(error)
    assert "\x1b" not in str(ConfigurationError([f"topic {FORGED}"]))
