# SPDX-License-Identifier: Apache-2.0
"""Topics in files: each range gives its records, files may grow, and what is not as it has to be is refused by name."""

from __future__ import annotations

import gzip
import lzma
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, SourceError, UnavailableError
from airflow_provider_cdc.core.file_log.appending import append, line_of
from airflow_provider_cdc.core.file_log.line_kinds import FileRecord
from airflow_provider_cdc.core.file_log.topic_files import TopicFiles

T = "s.shop.orders"
PLACE = f"{T}/partition=0"
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def record(offset: int, seed: int = 1) -> FileRecord:
    chance = random.Random(offset * 7 + seed)
    value = None if offset % 5 == 3 else chance.randbytes(chance.randrange(30))
    headers = [("h", b"\n"), ("n", None)] if offset % 4 == 0 else None
    return FileRecord(offset, 1_000 + 10 * offset, None if offset % 3 else b"k", value, headers)


def lines(*offsets: int, topic: str = T, partition: int = 0) -> bytes:
    return b"".join(line_of(topic, partition, record(offset)) for offset in offsets)


def put(root: Path, name: str, content: bytes) -> Path:
    path = root / PLACE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def name(start: int, suffix: str = ".jsonl") -> str:
    return f"{T}+0+{start:010d}{suffix}"


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(CdcError) as caught:
        work()
    assert caught.value.hint or isinstance(caught.value, ConfigurationError)
    return caught.value.code


def read(root: Path, start: int, end: int, **how: bool) -> list[FileRecord]:
    return list(TopicFiles(str(root), **how).read(T, 0, start, end))


@pytest.mark.parametrize("packing", PACKERS)
def test_every_range_gives_its_records(packing: str, tmp_path: Path) -> None:
    offsets = range(7, 30)
    for start, end in ((7, 12), (12, 13), (13, 30)):
        put(tmp_path, name(start, f".jsonl{packing}"), PACKERS[packing](lines(*range(start, end))))
    files = TopicFiles(str(tmp_path))
    assert files.topics() == [T] and files.partitions(T) == [0] and files.ends(T, 0) == (7, 30)
    for start in offsets:
        for end in range(start, 31):
            assert list(files.read(T, 0, start, end)) == [record(offset) for offset in range(start, end)]


def test_a_file_grows_and_a_half_written_line_does_not_count(tmp_path: Path) -> None:
    files = TopicFiles(str(tmp_path))
    path = put(tmp_path, name(0), b"")
    assert files.ends(T, 0) == (0, 0) and files.offset_at(T, 0, 0) is None
    whole = lines(*range(4))
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        done = whole[:size].count(b"\n")
        assert files.ends(T, 0) == TopicFiles(str(tmp_path)).ends(T, 0) == (0, done)
    put(tmp_path, name(4), lines(4))
    assert files.ends(T, 0) == (0, 5)
    assert list(files.read(T, 0, 3, 5)) == [record(3), record(4)]


def test_only_what_a_file_grew_by_is_read_for_its_end(tmp_path: Path) -> None:
    path, files = put(tmp_path, name(0), lines(0, 1)), TopicFiles(str(tmp_path))
    assert files.ends(T, 0) == (0, 2)
    damaged = b"x" * (len(lines(0, 1)) - 1) + b"\n"
    path.write_bytes(damaged + lines(2))
    assert files.ends(T, 0) == (0, 3)
    assert code_of(lambda: list(files.read(T, 0, 0, 3))) == "files.malformed"


def test_a_packed_file_that_is_not_whole_yet_has_the_lines_that_are(tmp_path: Path) -> None:
    packed = gzip.compress(lines(*range(500)))
    for size in (0, 1, 5, 12, len(packed) // 2, len(packed) - 1):
        put(tmp_path, name(0, ".jsonl.gz"), packed[:size])
        low, end = TopicFiles(str(tmp_path)).ends(T, 0)
        assert low == 0 and (end < 500 or size == len(packed) - 1)
        assert read(tmp_path, 0, end) == [record(offset) for offset in range(end)]


def test_times_are_found_over_files(tmp_path: Path) -> None:
    for start, end in ((0, 3), (3, 4), (4, 9)):
        put(tmp_path, name(start), lines(*range(start, end)))
    files = TopicFiles(str(tmp_path))
    for time in range(985, 1_100, 5):
        expected = next((offset for offset in range(9) if 1_000 + 10 * offset >= time), None)
        assert files.offset_at(T, 0, time) == expected
    assert TopicFiles(str(tmp_path), "values").offset_at(T, 0, 1_000) is None


def test_values_alone_are_counted_from_the_name_of_their_file(tmp_path: Path) -> None:
    put(tmp_path, name(5, ".bin"), b'{"a": 1}\n\n{"b": 2}\n')
    put(tmp_path, name(8, ".json.gz"), gzip.compress(b"{}\nhalf"))
    put(tmp_path, name(5, ".keys.json"), b"1\n2\n3\n")
    put(tmp_path, name(5, ".headers.json"), b"")
    files = TopicFiles(str(tmp_path), "values")
    assert files.ends(T, 0) == (5, 9)
    assert [(r.offset, r.value) for r in files.read(T, 0, 5, 9)] == [
        (5, b'{"a": 1}'), (6, b""), (7, b'{"b": 2}'), (8, b"{}"),
    ]  # fmt: skip
    assert {r[1:3] + r[4:] for r in files.read(T, 0, 5, 9)} == {(None, None, None)}


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({name(0): lines(0, 1), name(3): lines(3)}, "files.gap"),
        ({name(0): lines(0, 2)}, "files.gap"),
        ({name(0): lines(1, 2)}, "files.gap"),
        ({name(0): lines(0, 1), name(1): lines(1)}, "files.offsets"),
        ({name(0): lines(0, 1, 1)}, "files.offsets"),
        ({name(0): lines(0, 1, 0)}, "files.offsets"),
        ({name(1): lines(0)}, "files.offsets"),
        ({name(0): lines(0), name(0, ".jsonl.gz"): gzip.compress(lines(0))}, "files.offsets"),
        ({name(0): lines(0)[:-1], name(1): lines(1)}, "files.cut"),
        ({name(0): lines(0, topic="other")}, "files.malformed"),
        ({name(0): lines(0, partition=1)}, "files.malformed"),
        ({name(0): b"\n"}, "files.malformed"),
        ({name(0): b"[]\n"}, "files.malformed"),
        ({name(0): b'{"topic": "s.shop.orders", "partition": 0, "offset": -1}\n'}, "files.malformed"),
        ({name(0): lines(0).replace(b'"key": "', b'"key": "!')}, "files.malformed"),
        ({name(0, ".jsonl.gz"): lines(0)}, "files.damaged"),
        ({name(0, ".jsonl.xz"): lines(0)}, "files.damaged"),
        ({name(0, ".json"): lines(0)}, "files.layout"),
        ({name(0, ".avro"): b""}, "files.layout"),
        ({name(0, ""): b""}, "files.layout"),
        ({"records.jsonl": lines(0)}, "files.layout"),
        ({f"{T}+1+0000000000.jsonl": lines(0)}, "files.layout"),
        ({f"{T}+0+{1 << 63}.jsonl": lines(0)}, "files.layout"),
        ({f"{T}+0+-1.jsonl": lines(0)}, "files.layout"),
        ({f"year=2026/{name(0)}": lines(0)}, "files.layout"),
        ({name(0): lines(0), f"../{name(1)}": lines(1)}, "files.layout"),
        ({name(0): lines(0), f"../partition=01/{name(1)}": lines(1)}, "files.layout"),
        ({name(0): lines(0), f"../year=2026/{name(1)}": lines(1)}, "files.layout"),
        ({name(0): lines(0), f"../partition={1 << 31}/{name(1)}": b""}, "files.layout"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_has_to_be_is_refused(files: dict[str, bytes], code: str, tmp_path: Path) -> None:
    for path, content in files.items():
        put(tmp_path, path, content)
    topic = TopicFiles(str(tmp_path))
    assert code_of(lambda: (topic.partitions(T), topic.ends(T, 0), list(topic.read(T, 0, 0, 10)))) == code


def test_hidden_names_are_of_no_concern_and_a_topic_may_begin_with_an_underscore(tmp_path: Path) -> None:
    put(tmp_path, name(0), lines(0))
    for hidden in (".part", "_SUCCESS", f"../.{T}", "../_temporary/x", "../../.trash/x", f"._/{name(1)}"):
        put(tmp_path, hidden, b"?")
    assert read(tmp_path, 0, 1) == [record(0)]
    append(tmp_path, [("__beat.s", 0, record(0)), ("__beat.s", 0, record(1))])
    append(tmp_path, [("__beat.s", 0, record(2))])
    files = TopicFiles(str(tmp_path))
    assert files.topics() == ["__beat.s", T] and files.ends("__beat.s", 0) == (0, 3)


def test_gaps_are_accepted_where_that_is_stated(tmp_path: Path) -> None:
    put(tmp_path, name(2), lines(2, 5))
    put(tmp_path, name(9), lines(9, 12))
    assert TopicFiles(str(tmp_path), gaps=True).ends(T, 0) == (2, 13)
    assert [r.offset for r in read(tmp_path, 3, 12, gaps=True)] == [5, 9]
    assert [r.offset for r in read(tmp_path, 6, 8, gaps=True)] == []
    put(tmp_path, name(13), lines(14))
    assert code_of(lambda: read(tmp_path, 0, 20, gaps=True)) == "files.gone"
    assert code_of(lambda: read(tmp_path, 2, 20, gaps=True)) == "files.gap"


def test_records_that_are_gone_are_missed(tmp_path: Path) -> None:
    put(tmp_path, name(5), lines(5, 6))
    assert code_of(lambda: read(tmp_path, 4, 6)) == "files.gone"
    assert code_of(lambda: read(tmp_path, 5, 8)) == "files.gone"
    assert code_of(lambda: list(TopicFiles(str(tmp_path)).read("other", 0, 0, 1))) == "files.gone"
    assert list(TopicFiles(str(tmp_path)).read("other", 0, 1, 1)) == []


def test_a_line_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_cdc.core.file_log.topic_files.LINE_BYTES", 100)
    put(tmp_path, name(0, ".bin"), b"x" * 99 + b"\n" + b"y" * 101)
    assert code_of(lambda: TopicFiles(str(tmp_path), "values").ends(T, 0)) == "files.malformed"


def test_errors_say_where(tmp_path: Path) -> None:
    put(tmp_path, name(0), lines(0) + b"?\n")
    with pytest.raises(SourceError) as caught:
        read(tmp_path, 0, 5)
    assert caught.value.where == {"path": f"{PLACE}/{name(0)}", "line": 2, "folder": str(tmp_path)}


def test_a_folder_that_is_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder"):
        TopicFiles(str(tmp_path / "nowhere")).topics()
    put(tmp_path, name(0), lines(0))
    (tmp_path / PLACE / name(1)).symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnavailableError) as caught:
        read(tmp_path, 0, 2)
    assert caught.value.code == "files.unavailable"
    with pytest.raises(ConfigurationError):
        TopicFiles("sftp://host/folder")


def test_a_pipe_in_the_place_of_a_file_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(put(tmp_path, name(0), b"").with_name(name(1)))
    (tmp_path / PLACE / name(0)).unlink()
    assert TopicFiles(str(tmp_path)).ends(T, 0) == (1, 1)
    assert code_of(lambda: read(tmp_path, 1, 2)) == "files.gone"
