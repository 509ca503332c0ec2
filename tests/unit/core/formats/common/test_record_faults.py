# SPDX-License-Identifier: Apache-2.0
"""A fault of a format's own code costs the records that raise it and no others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.record_faults import decode_all
from airflow_provider_cdc.core.formats.contract import Format, Records, SliceInfo
from airflow_provider_cdc.core.formats.registry import open_format


class PanicException(BaseException):
    """Stands for pyo3's, whose name is all that one can know it by."""


class Faulty:
    """Writes one row a record; fails at some."""

    name = "faulty"

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self._failed = False

    def decode(self, records: Records) -> pa.RecordBatch:
        assert not self._failed, "an instance that failed was used again"
        out = ChangeBuilder(records, [])
        for index, value in enumerate(records.values):
            if value == b"bad":
                self._failed = True
                raise self._error
            out.add(index, "row", op="insert", database="d", table=f"t{index % 3}", after=value)
        return out.batch()


class Grouping(Faulty):
    """The same, of groups: a value is the sender and place/total."""

    def part_of(self, value: bytes | None, headers: Any) -> SliceInfo | None:
        index, total = (1, 2) if value == b"bad" else (0, 2) if value == b"first" else (0, 1)
        return SliceInfo("s", None, index, total)


def decoded(kind: type[Faulty], error: BaseException, *values: bytes) -> list[tuple[int, str]]:
    def opened() -> Format:
        return kind(error)  # type: ignore[return-value]

    count = len(values)
    records = Records("t", 0, list(range(count)), [None] * count, [None] * count, values, [None] * count)
    changes = decode_all(opened(), records, opened).to_pylist()
    assert all(c["raw"] == values[c["offset"]] and c["error"] for c in changes if c["kind"] == "error")
    return [(change["offset"], change["error_code"] or change["kind"]) for change in changes]


@pytest.mark.parametrize("error", [IndexError("secret"), PanicException("secret"), AssertionError(), RecursionError()])
@pytest.mark.parametrize("bad", [(0,), (6,), (2, 3), tuple(range(7))])
def test_the_records_around_a_fault_are_decoded(error: BaseException, bad: tuple[int, ...]) -> None:
    actual = decoded(Faulty, error, *[b"bad" if index in bad else b"{}" for index in range(7)])
    assert actual == [(index, "record.fault" if index in bad else "row") for index in range(7)]


def test_a_group_is_never_cut() -> None:
    actual = decoded(Grouping, IndexError(), b"{}", b"{}", b"{}", b"first", b"bad", b"{}")
    faults = [(3, "record.fault"), (4, "record.fault")]
    assert actual == [(0, "row"), (1, "row"), (2, "row"), *faults, (5, "row")]


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), pa.ArrowMemoryError()])
def test_what_is_no_fault_of_a_record_is_raised(error: BaseException) -> None:
    with pytest.raises(type(error)):
        decoded(Faulty, error, b"{}", b"bad")


def test_the_text_of_a_fault_does_not_quote_the_record() -> None:
    def opened() -> Format:
        return Faulty(ValueError("the value 4711"))  # type: ignore[return-value]

    (change,) = decode_all(opened(), Records("t", 0, [5], [0], [None], [b"bad"], [None]), opened).to_pylist()
    assert "4711" not in change["error"]
    assert "ValueError in test_record_faults.py" in change["error"]


def test_real_formats_are_split_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(open_format("canal-json"))
    whole = kind.decode
    monkeypatch.setattr(kind, "decode", lambda self, records: whole(self, records) if len(records) == 1 else [].pop())
    values = [b'{"type":"TIDB_WATERMARK","es":%d}' % number for number in range(1, 6)]
    records = Records("t", 0, list(range(5)), [0] * 5, [None] * 5, values, [None] * 5)
    changes = decode_all(open_format("canal-json"), records, lambda: open_format("canal-json")).to_pylist()
    assert [(change["offset"], change["kind"]) for change in changes] == [(n, "progress") for n in range(5)]
