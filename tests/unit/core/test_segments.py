# SPDX-License-Identifier: Apache-2.0
"""Packets in the lake: numbered through all segments, whole or refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import BusyError, CdcError
from airflow_provider_cdc.core.lake.segments import Packet, SegmentLog, segments_folder

FOLDER = segments_folder("shop", "example")


def log(root: Path) -> SegmentLog:
    return SegmentLog(str(root), FOLDER)


def filled(root: Path, seed: int = 1) -> list[Packet]:
    """Write some segments; return their packets."""
    chance = random.Random(seed)
    packets: list[Packet] = []
    for _ in range(6):
        more = [
            Packet(chance.randbytes(chance.randrange(40)), 1_000 + 10 * (len(packets) + i))
            for i in range(chance.randrange(1, 5))
        ]
        log(root).append(more)
        packets += more
    return packets


def test_every_range_gives_its_packets(tmp_path: Path) -> None:
    packets = filled(tmp_path)
    assert log(tmp_path).end() == len(packets)
    for start in range(len(packets) + 1):
        for end in range(start, len(packets) + 1):
            assert list(log(tmp_path).read(start, end)) == list(enumerate(packets))[start:end]


def test_times_are_searched_and_never_fall(tmp_path: Path) -> None:
    packets = filled(tmp_path)
    for time in range(990, 1_000 + 10 * len(packets), 5):
        first = next((number for number, packet in enumerate(packets) if packet.received_ms >= time), None)
        assert log(tmp_path).number_at(time) == first
    log(tmp_path).append([Packet(b"clock set back", 7)])
    assert [packet.received_ms for _, packet in log(tmp_path).read(len(packets), len(packets) + 1)] == [
        packets[-1].received_ms
    ]


def test_an_empty_log_has_no_id_and_one_with_packets_a_lasting_one(tmp_path: Path) -> None:
    assert log(tmp_path).log_id() == "" and log(tmp_path).end() == 0 and log(tmp_path).number_at(0) is None
    filled(tmp_path)
    assert log(tmp_path).log_id() == log(tmp_path).log_id() != ""


def test_of_two_writers_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = log(tmp_path), log(tmp_path)
    monkeypatch.setattr(second, "end", lambda: 0)
    first.append([Packet(b"a", 1)])
    with pytest.raises(BusyError) as caught:
        second.append([Packet(b"b", 1)])
    assert caught.value.code == "canal.segment_taken"
    assert [packet.data for _, packet in log(tmp_path).read(0, 1)] == [b"a"]


@pytest.mark.parametrize(("suffix", "content", "code"), [
    (".packets", None, "log.missing"), (".packets", b"", "log.damaged"), (".json", None, "log.missing"),
    (".json", b"{", "log.damaged"), (".json", b"[]", "log.damaged"), (".json", b'{"start": 0}', "log.damaged"),
])  # fmt: skip
def test_a_segment_that_is_not_what_was_written_is_refused(
    suffix: str, content: bytes | None, code: str, tmp_path: Path
) -> None:
    log(tmp_path).append([Packet(b"abc", 1)])
    (file,) = [path for path in (tmp_path / FOLDER).glob(f"0*{suffix}")]
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(CdcError) as caught:
        list(log(tmp_path).read(0, 1))
    assert caught.value.code == code


def test_a_file_that_no_manifest_names_does_not_exist(tmp_path: Path) -> None:
    filled(tmp_path)
    end = log(tmp_path).end()
    (tmp_path / FOLDER / f"{end:020d}-{'0' * 32}.packets").write_bytes(b"never acknowledged")
    assert log(tmp_path).end() == end
    log(tmp_path).append([Packet(b"again", 1)])
    assert [packet.data for _, packet in log(tmp_path).read(end, end + 1)] == [b"again"]
