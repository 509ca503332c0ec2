# SPDX-License-Identifier: Apache-2.0
"""``decode``: every record is printed in the file's order; what is not a record is printed too."""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.cli import main
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA


def record(offset: int, value: bytes | None, *, partition: int = 0, **more: Any) -> str:
    """Return one line of a file."""
    text = None if value is None else base64.b64encode(value).decode()
    entry = {"topic": "s.shop.t", "partition": partition, "offset": offset, "timestamp": 1_700_000_000_000}
    return json.dumps({**entry, "key": None, "value": text, "headers": None, **more})


def row(number: int) -> bytes:
    source = {"db": "shop", "table": "t", "file": "b.000001", "pos": number, "row": 0, "ts_ms": 1, "connector": "mysql"}
    return json.dumps({"op": "c", "before": None, "after": {"id": number}, "source": source, "ts_ms": 1}).encode()


def decoded(capsys: pytest.CaptureFixture[str], *files: Path, wire: str = "debezium-json") -> list[dict[str, Any]]:
    assert main(["decode", "--format", wire, *map(str, files)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_changes_come_in_the_files_order_with_the_contracts_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(record(n // 2, row(n), partition=n % 2) for n in range(40)))
    actual = decoded(capsys, file)
    assert [json.loads(change["after"])["id"] for change in actual] == list(range(40))
    assert list(actual[0]) == CHANGE_SCHEMA.names
    assert (actual[0]["kind"], actual[0]["op"]) == ("row", "insert")
    assert actual[0]["kafka_time"] == "2023-11-14T22:13:20+00:00"


def test_the_buffer_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(record(n // 3, row(n), partition=n % 3) for n in range(30)))
    whole = decoded(capsys, file)
    monkeypatch.setattr("airflow_provider_cdc.batch.recorded_changes._BUFFER", 4)
    assert decoded(capsys, file) == whole


def test_the_row_before_an_update_is_whole_where_records_name_only_what_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"database": "shop", "table": "t", "isDdl": False, "es": 1, "ts": 1, "pkNames": ["id"]}
    update = {**said, "type": "UPDATE", "data": [{"id": "1", "v": "new"}], "old": [{"v": "old"}]}
    insert = {**said, "type": "INSERT", "data": [{"id": "2", "v": "a"}]}
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(record(n, json.dumps(each).encode()) for n, each in enumerate((update, insert))))
    first, second = decoded(capsys, file, wire="canal-json")
    assert (json.loads(first["before"]), json.loads(first["after"])) == (
        {"id": "1", "v": "old"},
        {"id": "1", "v": "new"},
    )
    assert (second["before"], json.loads(second["after"])) == (None, {"id": "2", "v": "a"})


BROKEN = [
    "no json",
    "[1]",
    "null",
    '{"partition": 0, "offset": 0}',
    record(0, b"", partition=-1),
    record(1 << 63, b""),
    record(0, b"", timestamp="soon"),
    record(0, None).replace('"value": null', '"value": "%%%"'),
    record(0, None).replace('"value": null', '"value": 7'),
    record(0, b"", headers=[["only a name"]]),
    record(0, b"", headers=5),
    "[" * 100_000,
]


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_line_is_an_error_and_the_next_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f"{record(1, row(1))}\n{line}\n\n{record(2, row(2))}\n")
    actual = decoded(capsys, file)
    assert [change["kind"] for change in actual] == ["row", "error", "row"]
    assert actual[1]["error_code"] == "file.line_broken"
    assert base64.b64decode(actual[1]["raw"]) == line.encode()


def test_a_bad_record_is_an_error_with_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(record(5, b"\xff{"))
    (change,) = decoded(capsys, file)
    assert (change["kind"], change["offset"]) == ("error", 5)
    assert base64.b64decode(change["raw"]) == b"\xff{"


def test_a_compressed_file_that_ends_early_gives_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(record(n, row(n)) for n in range(2_000)).encode()
    whole, torn = tmp_path / "a.jsonl.xz", tmp_path / "b.jsonl.xz"
    whole.write_bytes(lzma.compress(text))
    torn.write_bytes(lzma.compress(text)[:-200])
    actual = decoded(capsys, whole, torn)
    assert len(actual) >= 2_001
    assert {change["kind"] for change in actual} == {"row", "error"}
    assert actual[-1]["error_code"] == "file.line_broken"


def test_what_is_no_file_or_no_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "--format", "debezium-json", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
    assert main(["decode", "--format", "morse", str(tmp_path)]) == 2
    assert "debezium-json" in capsys.readouterr().err
    assert main(["decode", "--format", "debezium-json", "--option", "speed=2", str(tmp_path)]) == 2
    assert "time.precision.mode" in capsys.readouterr().err


def test_records_of_a_registry_are_decoded_with_its_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    capture = Path(__file__).parents[1] / "captures" / "data" / "public-shop-routed-avro-my8"
    file = str(capture / "records.jsonl.xz")
    command = ["decode", "--format", "debezium-avro"]
    assert main([*command, "--schemas", str(capture / "schemas.json"), file]) == 0
    kinds = [json.loads(text)["kind"] for text in capsys.readouterr().out.splitlines()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "row": 56, "schema": 49, "transaction": 1021, "progress": 18, "ignored": 2,
    }  # fmt: skip
    assert main([*command, file]) == 0
    codes = {json.loads(text)["error_code"] for text in capsys.readouterr().out.splitlines()}
    assert codes == {"record.schema_unknown", None}
