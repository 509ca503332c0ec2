# SPDX-License-Identifier: Apache-2.0
"""Every JSON text in the vendors' documents on their formats, through ``airflow-cdc decode``."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.registry import open_format
from tests.decode_verb import Record, decoded
from tests.vendor_samples.documents import FOLDER, blocks, document
from tests.vendor_samples.samples import SAMPLES, Ddl, Mark, NoMessage, Row, Sample, repaired

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the vendors' documents are not next to this project")

ALL = [(number, heading) for number, samples in SAMPLES.items() for heading in samples]
Image = dict[str, Any] | None


def printed(number: str, heading: str) -> str:
    (text,) = (block.text for block in blocks(number) if block.heading == heading)
    return text


def record(number: str, heading: str, text: str) -> Record:
    """Return the record that a text is, or is the key of."""
    if (number, heading) == ("002", "Key"):
        return Record(printed(number, "Value").encode(), text.encode())
    key = (
        repaired(SAMPLES["002"]["Key"], printed(number, "Key")).encode()
        if (number, heading) == ("002", "Value")
        else None
    )
    return Record(text.encode(), key)


def the_change(sample: Sample, one: Record, folder: Path) -> dict[str, Any]:
    (change,) = decoded([one], sample.format, folder, sample.options)
    return change


def test_every_document_has_its_tests() -> None:
    numbers = {file.name[:3] for file in FOLDER.glob("*.txt")}
    assert numbers == SAMPLES.keys() | {"000", "001"}
    assert blocks("000") + blocks("001") == []  # protobuf only: test_definitions.py


@pytest.mark.parametrize("number", SAMPLES)
def test_every_text_has_a_verdict_and_every_verdict_its_text(number: str) -> None:
    assert sorted(block.heading for block in blocks(number)) == sorted(SAMPLES[number])


@pytest.mark.parametrize(("number", "heading"), ALL)
def test_a_text_has_the_meaning_that_the_document_gives_it(number: str, heading: str, tmp_path: Path) -> None:
    sample = SAMPLES[number][heading]
    text = printed(number, heading)
    change = the_change(sample, record(number, heading, repaired(sample, text)), tmp_path)
    match sample.meaning:
        case NoMessage():
            assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
        case Mark(time):
            assert change["kind"] == "progress"
            assert datetime.fromisoformat(change["source_time"]).timestamp() == time / 1000
        case Ddl(database, statement):
            assert (change["kind"], change["statement"]) == ("schema", statement)
            assert (change["database"], change["default_database"]) == (database, database)
        case Row(op, database, table, key):
            assert (change["kind"], change["op"], change["error"]) == ("row", op, None)
            assert (change["database"], change["table"]) == (database, table)
            images = expected_images(sample.format, spelled(record(number, heading, repaired(sample, text)).value))
            assert (spelled(change["before"]), spelled(change["after"])) == images
            described = open_format(sample.format).describe(change["columns"])
            assert set(described.names) == {name for image in images for name in image or ()}
            assert described.key == key


@pytest.mark.parametrize(("number", "heading"), [(n, heading) for n, heading in ALL if SAMPLES[n][heading].defect])
def test_a_text_that_is_no_json_is_refused_with_its_bytes(number: str, heading: str, tmp_path: Path) -> None:
    sample, one = SAMPLES[number][heading], record(number, heading, printed(number, heading))
    with pytest.raises(ValueError):
        json.loads(printed(number, heading))
    change = the_change(sample, one, tmp_path)
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    assert change["raw"]


def spelled(text: str | bytes | None) -> Any:
    """Read JSON with every number as it is spelled, 700 digits or not."""
    return None if text is None else json.loads(text, parse_int=str, parse_float=str)


def expected_images(name: str, message: dict[str, Any]) -> tuple[Image, Image]:
    """Return the row before and after, by what the document says of the method."""
    match name:
        case "oms-default" | "oms-default-extended":
            return without_types(message["prevStruct"]), without_types(message["postStruct"])
        case "oms-dataworks":
            before, after = (message["payload"][part] for part in ("before", "after"))
            return before and before["data"], after and after["data"]
        case "oms-canal":
            (data,) = message["data"]
            old = {column: value for part in message["old"] or () for column, value in part.items() if column in data}
            both = {"INSERT": (None, data), "DELETE": (data, None), "UPDATE": ({**data, **old}, data)}
            return both[message["type"]]
        case "oms-shareplex":
            data, key = message["data"], message.get("key")
            both = {"ins": (None, data), "del": (data, None), "upd": (key, {**(key or {}), **data})}
            return both[message["meta"]["op"]]
        case "drs-json":
            return message["old"][0], message["data"][0]
    payload = message["payload"]  # dtle
    return payload["before"], payload["after"]


def without_types(image: Image) -> Image:
    return image and {name: value for name, value in image.items() if name != "__light_type"}


def test_the_escapes_that_the_document_lists_mean_what_json_says(tmp_path: Path) -> None:
    text = document("004")
    lines = text[text.index("表3 转义字符") :].split()
    listed = [(character, escape) for character, escape in pairwise(lines) if escape[:2] == "\\u"]
    assert listed == [("<", r"\u003d"), (">", r"\u003e"), ("&", r"\u0026"), ("=", r"\u003d"), ("'", r"\u0027")]
    sample = printed("004", "")
    for character, escape in listed:
        (change,) = decoded([Record(sample.replace("华为云huaweicloud", escape).encode())], "drs-json", tmp_path)
        # the document's first line is wrong in every edition: it is = (docs/wire/huawei-drs.md 3.4)
        assert json.loads(change["after"])["c10"] == ("=" if character == "<" else character)
