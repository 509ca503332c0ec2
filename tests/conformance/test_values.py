# SPDX-License-Identifier: Apache-2.0
"""Hard values through every format: written as its tool does, decoded and typed, they are what the source holds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.repeated_rows import SENT_COLUMNS, with_sending
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS, ordered, resolve
from airflow_provider_cdc.core.apply.row_images import SchemaMissing
from airflow_provider_cdc.core.formats.common.clock_positions import ClockPositions
from airflow_provider_cdc.core.formats.contract import Records, Registered
from airflow_provider_cdc.core.formats.registry import format_names, open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.cross_format.events import Event, Image, Message, Row
from tests.cross_format.history import DATABASE, START_MS, structure
from tests.cross_format.truth import problems
from tests.cross_format.writers import writer_of

CREATE = (
    "CREATE TABLE hard (id BIGINT NOT NULL PRIMARY KEY, t TEXT, d DECIMAL(38,10), n BIGINT UNSIGNED, b BLOB,"
    " name_a INT, name_b INT)"
)
BASE: Image = {"id": 1, "t": "plain", "d": Decimal("1.5000000000"), "n": 0, "b": b"", "name_a": 1, "name_b": 2}
VALUES: dict[str, Image] = {
    "all NULL": {"t": None, "d": None, "n": None, "b": None, "name_a": None, "name_b": None},
    "empty text is not NULL": {"t": ""},
    "the text null": {"t": "null"},
    "emoji": {"t": "😀👩‍👩‍👧‍👦"},
    "NUL in a text": {"t": "a\x00b"},
    "control characters": {"t": "\x01\x02\x1f\x7f"},
    "line separators": {"t": "a\u2028b\u2029c\u0085d"},
    "quotes and backslashes": {"t": '\\"\\\\"\'\\n'},
    "what looks like JSON": {"t": '{"t":"x","id":9}'},
    "a megabyte of text": {"t": "aé😀" * 150_000},
    "a megabyte of bytes": {"b": bytes(range(256)) * 4096},
    "no bytes": {"b": b""},
    "zero bytes": {"b": b"\x00\x00"},
    "greatest and least numbers": {"d": Decimal("9999999999999999999999999999.9999999999"), "n": 2**64 - 1},
    "least decimal": {"d": Decimal("-9999999999999999999999999999.9999999999"), "n": 2**63},
    "a tenth": {"d": Decimal("0.1000000000")},
    "the smallest step": {"d": Decimal("-0.0000000001")},
}


def messages(writer: Any, row: Image) -> list[Message]:
    schema = structure([CREATE], "hard")
    assert schema is not None
    event = Event(2, 1, 200, START_MS, START_MS, 2, Row("insert", DATABASE, "hard", schema, None, row))
    return list(writer.write(event, 1))


def resolved(writer: Any, sent: list[Message], values: list[bytes | None]) -> tuple[MergePlan | None, int]:
    """Return what the table becomes, None where a row does not fit it, and how many records were refused.

    :param writer: of the messages.
    :param values: what is read instead of theirs.
    """
    wire = open_format(writer.format, writer.options)
    if isinstance(wire, Registered):
        wire.learn(writer.schemas)
    keys, headers = [m.key for m in sent], [m.headers for m in sent]
    batch = wire.decode(Records("t", 0, list(range(len(values))), [START_MS] * len(values), keys, values, headers))
    if wire.order == "clock":
        batch = ClockPositions().fill(batch)
    kinds = batch.column("kind").cast(pa.string())
    errors = pc.sum(pc.equal(kinds, "error")).as_py()
    rows = pa.Table.from_batches([batch.filter(pc.equal(kinds, "row"))])
    rows = rows.filter(pc.equal(rows.column("table").cast(pa.string()), "hard"))
    clock = wire.order == "clock"
    rows = with_sending(rows.select([*RESOLVE_COLUMNS, *SENT_COLUMNS])) if clock else rows.select(RESOLVE_COLUMNS)
    timeline = build_timeline([SchemaChange("", 0, DATABASE, CREATE)])
    owner = timeline.owner(TableName(DATABASE, "hard"), "~")
    assert owner is not None
    try:
        plan = resolve(ordered(rows), timeline.tables[owner], None, wire, TypeOptions())
    except SchemaMissing:
        return None, errors
    return plan, errors


@pytest.mark.parametrize("why", VALUES)
@pytest.mark.parametrize("name", format_names())
def test_a_hard_value_arrives_as_it_is(name: str, why: str) -> None:
    row = {**BASE, **VALUES[why]}
    writer = writer_of(name)
    sent = messages(writer, row)
    plan, errors = resolved(writer, sent, [m.value for m in sent])
    assert errors == 0
    assert plan is not None
    assert not plan.failures
    schema = structure([CREATE], "hard")
    assert schema is not None
    assert not problems(plan.steps[-1].upserts, schema, [row])


@pytest.mark.parametrize("name", format_names())
def test_text_that_is_not_utf8_is_refused(name: str) -> None:
    writer = writer_of(name)
    sent = messages(writer, {**BASE, "t": "MARKMARK"})
    broken = [m.value.replace(b"MARKMARK", b"\xff\xfeRKMARK") for m in sent]
    if broken == [m.value for m in sent]:
        pytest.skip("the format does not write text as it is")
    plan, errors = resolved(writer, sent, broken)
    assert errors or (plan is not None and plan.failures)
    assert plan is None or not plan.steps[-1].upserts.num_rows


@pytest.mark.parametrize("name", format_names())
def test_two_members_of_one_name_are_never_taken_for_a_row(name: str) -> None:
    writer = writer_of(name)
    sent = messages(writer, BASE)
    broken = [m.value.replace(b"name_a", b"name_b") for m in sent]
    if broken == [m.value for m in sent]:
        pytest.skip("the format's rows do not name their columns")
    plan, errors = resolved(writer, sent, broken)
    assert errors or plan is None or not plan.steps[-1].upserts.num_rows
