# SPDX-License-Identifier: Apache-2.0
"""Tables remembered by their descriptions."""

from __future__ import annotations

import msgspec
import pytest

from airflow_provider_cdc.core.formats.common import described_tables
from airflow_provider_cdc.core.formats.common.described_tables import DescribedTables


def tables() -> tuple[DescribedTables[object], list[tuple[bytes, bytes]]]:
    made: list[tuple[bytes, bytes]] = []

    def make(columns: bytes, key: bytes) -> object:
        if columns == b"broken":
            raise msgspec.ValidationError
        made.append((columns, key))
        return object()

    result = DescribedTables(make)
    made.clear()  # a table is there from the start for messages without a description
    return result, made


def test_equal_descriptions_give_the_same_table_also_after_another() -> None:
    known, made = tables()
    first = known.find(msgspec.Raw(b"{1}"), msgspec.Raw(b"[1]"))
    other = known.find(msgspec.Raw(b"{1}"), msgspec.Raw(b"[2]"))
    assert first is not other
    assert known.find(msgspec.Raw(b"{1}"), msgspec.Raw(b"[1]")) is first
    assert known.find(msgspec.Raw(b"{1}"), msgspec.Raw(b"[2]")) is other
    assert made == [(b"{1}", b"[1]"), (b"{1}", b"[2]")]


def test_no_description_is_one_too() -> None:
    known, made = tables()
    without = known.find(msgspec.Raw())
    known.find(msgspec.Raw(b"{1}"))
    assert known.find(msgspec.Raw()) is not known.find(msgspec.Raw(b"{1}"))
    assert without is not None and (b"{1}", b"") in made


def test_a_description_that_cannot_be_read_fails_each_time_and_changes_nothing() -> None:
    known, _ = tables()
    first = known.find(msgspec.Raw(b"{1}"))
    for _ in range(2):
        with pytest.raises(msgspec.MsgspecError):
            known.find(msgspec.Raw(b"broken"))
    assert known.find(msgspec.Raw(b"{1}")) is first


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(described_tables, "_LIMIT", 3)
    known, made = tables()
    for number in [*range(5), 4, 3, 0]:
        known.find(msgspec.Raw(b"%d" % number))
    # 3 makes room for itself and those after it; 0 was forgotten then
    assert [columns for columns, _ in made] == [b"0", b"1", b"2", b"3", b"4", b"0"]
