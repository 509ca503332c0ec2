# SPDX-License-Identifier: Apache-2.0
"""``detect`` and ``formats``: what is said of recorded records, and of what the formats carry."""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.cli import main
from airflow_provider_cdc.core.formats.registry import format_names, open_format
from tests.sample import ALL

CAPTURES = Path(__file__).parents[1] / "captures" / "data"
SOURCE = {"connector": "mysql", "db": "shop", "table": "t", "file": "b.000001", "row": 0, "ts_ms": 1}


def line(offset: int, value: bytes | None, topic: str = "s.shop.t") -> str:
    text = None if value is None else base64.b64encode(value).decode()
    return json.dumps({"topic": topic, "partition": 0, "offset": offset, "timestamp": None, "key": None, "value": text})


def row(number: int) -> bytes:
    return json.dumps({"op": "c", "after": {"id": 1}, "source": {**SOURCE, "pos": number}, "ts_ms": 1}).encode()


def test_a_decided_format_is_printed_with_its_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(line(n, row(n)) for n in range(3)))
    assert main(["detect", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("debezium-json (3 records looked at)\n")
    assert "source.connector is mysql" in out


def test_machines_get_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "records.jsonl.xz"
    file.write_bytes(lzma.compress("\n".join(line(n, row(n)) for n in range(3)).encode()))
    assert main(["detect", "--json", str(file)]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert set(reported) == {"format", "options", "candidates", "records", "near_misses"}
    assert (reported["format"], reported["records"]) == ("debezium-json", 3)
    assert set(reported["candidates"][0]) == {"format", "share", "evidence"}


def test_undecided_is_an_answer_with_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(line(0, b"hello"))
    assert main(["detect", "--json", str(file)]) == 3
    assert json.loads(capsys.readouterr().out)["format"] is None
    assert main(["detect", str(file)]) == 3
    assert capsys.readouterr().out.startswith("undecided (1 records looked at)\n")


def test_the_exit_code_is_reported_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["detect", "--help"])
    assert "exits with 3 if undecided" in capsys.readouterr().out


def test_broken_lines_are_counted_and_a_missing_file_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f"{line(0, row(0))}\nno record\n")
    assert main(["detect", str(file)]) == 0
    assert "1 lines" in capsys.readouterr().err
    assert main(["detect", str(tmp_path / "none")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_only_the_first_records_of_each_partition_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(line(n, row(n), topic) for topic in ("a", "b") for n in range(300)))
    assert main(["detect", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 400


@pytest.mark.parametrize(
    ("capture", "name"),
    [*[("public-a", "debezium-json")] * ALL, ("public-b", "debezium-json"), ("canal-mdb-f", "canal-json")],
)
def test_recorded_traffic_is_recognised(capture: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = CAPTURES / capture / "records.jsonl.xz"
    if not file.is_file():
        pytest.skip(f"{capture} is not in this checkout")
    assert main(["detect", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == name


# ---- formats


def documents(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert main(["formats", "--json"]) == 0
    return {item["name"]: item for item in json.loads(capsys.readouterr().out)}


def test_formats_say_what_they_carry_and_where_ddl_comes(capsys: pytest.CaptureFixture[str]) -> None:
    reported = documents(capsys)
    assert list(reported) == format_names()
    for name, item in reported.items():
        wire = open_format(name)
        assert set(item) == {"name", "summary", "order", "carries", "ddl", "options"}
        assert (item["order"], item["carries"]) == (wire.order, sorted(wire.carries))
        assert (item["ddl"] is None) == ("ddl" not in wire.carries)
        assert item["options"] == dict(wire.options)
    assert reported["debezium-json"]["ddl"] == "own_topic"
    assert reported["canal-json"]["ddl"] == "among_rows"


def test_formats_are_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:7] == ["format", "order", "rows", "DDL", "progress", "transactions", "types"]
    debezium = next(text for text in lines if text.startswith("debezium-json"))
    assert debezium.split()[1:8] == ["exact", "yes", "own", "topic", "yes", "yes", "yes"]
    canal = next(text for text in lines if text.startswith("canal-json"))
    assert "by clock" in canal and "among rows" in canal
    assert any(text.split()[:2] == ["dtle-json", "text_as_base64"] for text in lines)


def test_records_of_a_registry_are_decided_with_its_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    capture = CAPTURES / "public-shop-avro-my8"
    file = str(capture / "records.jsonl.xz")
    assert main(["detect", file]) == 3
    out = capsys.readouterr().out
    assert "they look like a frame of a schema registry" in out
    assert "format: debezium-avro" in out and "source.schema_registry" in out
    assert "airflow-cdc detect --schemas FILE" in out
    assert main(["detect", "--schemas", str(capture / "schemas.json"), file]) == 0
    out = capsys.readouterr().out
    assert out.startswith("debezium-avro (")
    assert "source.connector is mysql" in out


@pytest.mark.parametrize("text", [None, "{", "[1]", '[{"id": "x", "schema": ""}]'])
def test_a_file_of_schemas_that_cannot_be_read_is_named(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas, file = tmp_path / "schemas.json", tmp_path / "records.jsonl"
    file.write_text(line(0, row(1)))
    if text is not None:
        schemas.write_text(text)
    assert main(["detect", "--schemas", str(schemas), str(file)]) == 2
    assert "schemas.json" in capsys.readouterr().err
