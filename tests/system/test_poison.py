# SPDX-License-Identifier: Apache-2.0
"""One record that nobody can carry among ten healthy tables: those are committed, its own table is parked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.airflow.shop import Answer, rows
from tests.cross_format.debezium_json_writer import Writer as DebeziumWriter
from tests.cross_format.oms_canal_writer import Writer as OmsCanalWriter
from tests.services.broker import Broker
from tests.services.postgres import Postgres
from tests.system.ground import INT, PRICED, TEXT, Ground, Story
from tests.system.site import Site

pytestmark = pytest.mark.system

HEALTHY = [f"t{number}" for number in range(10)]


def healthy(writer: Any = None, *, creates: bool = True) -> Story:
    story = Story(writer or DebeziumWriter())
    for table in HEALTHY:
        if creates:
            story.create(table)
        story.insert(table)
    return story


@pytest.fixture
def ground(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Ground:
    topic = "".join(c for c in request.node.name if c.isalnum())[-60:]
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {
        "topics": [f"{topic}.rows"],
        "schema_topic": f"{topic}.schema",
        "heartbeat_topic": None,
    }
    return Ground(site, broker, topic)


def parked(answer: Answer) -> dict[str, str]:
    """Demand that the command set tables aside and committed the rest; return why, by table."""
    assert "Traceback" not in answer.err, answer.err
    assert (answer.code, answer.json["status"]) == (3, "parked"), answer.out + answer.err
    return {line["table"]: line["reason"] for line in answer.json["parked"]}


def demand_healthy(ground: Ground, tables: Sequence[str] = HEALTHY) -> None:
    assert ground.committed(*tables) == {table: [{"id": 1, "v": "one"}] for table in tables}


def _huge_file_number(story: Story) -> None:
    story.create("sick")
    story.insert("sick")
    story.change_last(lambda value: value.replace(b"mysql-bin.000001", b"mysql-bin.9223372036854775808"))


def _precision_is_no_number(story: Story) -> None:
    from decimal import Decimal

    story.create("sick", PRICED, "`id` INT NOT NULL, `v` DECIMAL(10,2)")
    story.insert("sick", PRICED, id=1, v=Decimal("1.10"))
    story.change_last(
        lambda value: value.replace(b'"connect.decimal.precision":"10"', b'"connect.decimal.precision":"x"')
    )


@pytest.mark.parametrize("poison", [_huge_file_number, _precision_is_no_number])
def test_a_record_that_cannot_be_decoded_parks_its_table_until_it_may_be_left_out(
    ground: Ground, poison: Callable[[Story], None]
) -> None:
    story = healthy()
    poison(story)
    offset = sum(message.topic == "rows" for message, _ in story.messages) - 1
    story.insert("t0", id=2, v="two")  # what comes behind is read
    ground.send(story)
    why = parked(ground.site.sync())
    assert set(why) == {"sick"}
    assert "land.quarantine_exceeded" in why["sick"] and "record.malformed" in why["sick"]
    assert f"topic={ground.topic}.rows, partition=0, offset={offset}" in why["sick"]
    demand_healthy(ground, HEALTHY[1:])
    assert len(rows(ground.site.lake, "shop", "t0")) == 2

    # it stays so, and a later run does not forget it
    assert parked(ground.site.sync()) == why

    ground.site.changes["tables"] = {"shop.sick": {"quarantine_limit": 1}}
    done = ground.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    assert rows(ground.site.lake, "shop", "sick") == []


def test_a_kafka_time_beyond_the_calendar_stops_nothing(ground: Ground) -> None:
    story = healthy()
    story.create("sick")
    story.change_last(lambda value: value, time=10**15)  # in the year 33658
    story.insert("sick")
    ground.send(story)
    done = ground.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    demand_healthy(ground, [*HEALTHY, "sick"])


def _impossible_decimal(story: Story) -> None:
    kind = ColumnType("decimal", 5, 10)
    schema = TableSchema((Column(1, "id", INT, False), Column(2, "v", kind)), (1,))
    story.create("sick", schema, "`id` INT NOT NULL, `v` DECIMAL(5,10)")
    story.insert("sick", schema, id=1, v=None)


def _endless_binary(story: Story) -> None:
    kind = ColumnType("binary", 99_999_999_999)
    schema = TableSchema((Column(1, "id", INT, False), Column(2, "v", kind)), (1,))
    story.create("sick", schema, "`id` INT NOT NULL, `v` BINARY(99999999999)")
    story.insert("sick", schema, id=1, v=None)


def _names_that_differ_in_case(story: Story) -> None:
    schema = TableSchema((Column(1, "id", INT, False), Column(2, "A", TEXT), Column(3, "a", TEXT)), (1,))
    story.create("sick", schema, "`id` INT NOT NULL, `A` VARCHAR(20), `a` VARCHAR(20)")
    story.insert("sick", schema, id=1, A="x", a="y")


def _nul_in_a_column(story: Story) -> None:
    schema = TableSchema((Column(1, "id", INT, False), Column(2, "a\0b", TEXT)), (1,))
    story.create("sick", schema, "`id` INT NOT NULL, `a\0b` VARCHAR(20)")
    story.insert("sick", schema, **{"id": 1, "a\0b": "x"})


@pytest.mark.parametrize(
    ("poison", "code"),
    [
        (_impossible_decimal, "schema.impossible_type"),
        (_endless_binary, "schema.impossible_type"),
        (_names_that_differ_in_case, "sink.columns_refused"),
        (_nul_in_a_column, "sink.columns_refused"),
    ],
)
def test_a_table_that_no_target_can_have_is_parked_alone(
    ground: Ground, poison: Callable[[Story], None], code: str
) -> None:
    story = healthy()
    poison(story)
    offset = sum(message.topic == "rows" for message, _ in story.messages) - 1
    ground.send(story)
    why = parked(ground.site.sync())
    assert set(why) == {"sick"}
    assert f"[{code}]" in why["sick"], why
    assert f"topic={ground.topic}.rows, partition=0, offset={offset}" in why["sick"]
    demand_healthy(ground)


def test_a_name_too_long_for_a_file_system_has_its_table(ground: Ground) -> None:
    story, name = healthy(), "，" * 64
    for table in (name, "，" * 63 + "。"):
        story.create(table)
        story.insert(table)
    ground.send(story)
    done = ground.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    demand_healthy(ground)
    long = [folder for folder in (ground.site.lake / "shop").iterdir() if "~-" in folder.name]
    assert len(long) == 2
    assert [rows(ground.site.lake, "shop", folder.name) for folder in long] == [[{"id": 1, "v": "one"}]] * 2


def test_a_type_that_is_no_text_says_nothing_about_time(ground: Ground) -> None:
    story = healthy(OmsCanalWriter(), creates=False)
    story.insert("sick")
    story.change_last(lambda value: value.replace(b'"INSERT"', b'"INS\xffERT"'))
    ground.send(story)
    create = "CREATE TABLE t (id INT NOT NULL, v VARCHAR(20), PRIMARY KEY (id))"
    ground.site.changes["source"] |= {"format": "oms-canal", "schema_topic": None}
    ground.site.changes["tables"] = {
        f"shop.{table}": {"create": create.replace("t (", f"{table} (")} for table in [*HEALTHY, "sick"]
    }
    ground.site.changes["policy"] = {"quarantine_limit": 1}  # bytes that are no text do not name their table
    done = ground.site.sync("--until", "2026-01-01T00:00:05+00:00")
    assert "Traceback" not in done.err
    assert (done.code, done.json["quarantined"]) == (0, 1), done.out + done.err
    demand_healthy(ground)


def test_a_nul_in_a_name_is_kept_by_a_postgresql_ledger(ground: Ground, postgres: Postgres) -> None:
    story = healthy()
    story.insert("si\0ck")
    ground.send(story)
    address = urlsplit(postgres.url)
    connection = {
        "host": address.hostname,
        "port": address.port,
        "login": address.username,
        "password": address.password,
    }
    ground.site.environment["AIRFLOW_CONN_LEDGER"] = json.dumps(
        {"conn_type": "postgres", "schema": address.path[1:], **connection}
    )
    ground.site.changes["ledger"] = "ledger"
    ground.site.changes["policy"] = {"ddl_grace_seconds": 0}
    for code in (5, 3):  # the table waits for its CREATE TABLE, then its grace time is over
        answer = ground.site.sync()
        assert "Traceback" not in answer.err, answer.err
        assert answer.code == code, answer.out + answer.err
    demand_healthy(ground)


def test_a_packet_with_two_bodies_is_read_by_its_last(ground: Ground) -> None:
    from tests.cross_format.canal_protobuf_writer import Writer

    story = healthy(Writer())
    story.create("sick")
    story.insert("sick", id=7, v="first")
    first = story.messages.pop()[0].value or b""
    story.insert("sick")
    story.change_last(lambda value: first + value)
    ground.send(story)
    ground.site.changes["source"] |= {"format": "canal-protobuf", "schema_topic": None}
    done = ground.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    demand_healthy(ground, [*HEALTHY, "sick"])


def test_bytes_that_name_no_table_stop_the_batch_until_they_may_be_left_out(ground: Ground) -> None:
    story = healthy()
    story.insert("t0", id=2, v="two")
    story.change_last(lambda value: value[: len(value) // 2])
    ground.send(story)
    refused = ground.site.sync()
    assert refused.code == 3
    assert json.loads(refused.out)["error"]["code"] == "land.quarantine_exceeded"
    ground.site.changes["policy"] = {"quarantine_limit": 1}
    assert ground.site.sync().code == 0
    demand_healthy(ground)
