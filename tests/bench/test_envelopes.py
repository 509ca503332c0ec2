# SPDX-License-Identifier: Apache-2.0
"""The floor next to a format's decoder reads what records really say around their images."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.bench.envelopes import ENVELOPES, envelope_decoder
from tests.bench.formats_data import Orders, records_of, writer_of

IMAGES = {"data", "old", "before", "after", "prevStruct", "postStruct", "key"}


@pytest.mark.parametrize("name", sorted(ENVELOPES))
def test_the_floor_finds_what_each_envelope_says(name: str) -> None:
    values = [
        r.value for r in records_of(name, writer_of(name), Orders(), 20, 1) if r.topic.endswith("rows") and r.value
    ]
    values = [value for value in values if not value.endswith(b'"payload":null}')]  # tombstones of dtle
    read = envelope_decoder(name, values[0])
    for value in values:
        reported = msgspec.json.decode(value)
        actual = _without_images(read(value))
        assert actual
        assert _within(actual, reported), name


def _without_images(envelope: Any) -> dict[str, Any]:
    members = {name: getattr(envelope, name) for name in envelope.__struct_fields__ if name not in IMAGES}
    return {
        name: _without_images(member) if isinstance(member, msgspec.Struct) else member
        for name, member in members.items()
        if member is not None
    }


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(_within(member, whole[name]) for name, member in part.items())
    return bool(part == whole)
