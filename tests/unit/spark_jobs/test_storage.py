# SPDX-License-Identifier: Apache-2.0
"""Names from outside as parts of paths, and documents that appear whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.lake.storage import Storage, path_part
from tests.locations import table_location


@pytest.mark.parametrize("name", ["orders", "Order Items", "größe", "日本語", "t.1", "a-b_c", "a=b", "x(1)"])
def test_readable_names_stay_what_they_are(name: str) -> None:
    assert path_part(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "",
        "a/b",
        "a\\b",
        "%2F",
        "_cdc",
        "_delta_log",
        ".hidden",
        " lead",
        "trail ",
        "dot.",
        "nul\0",
        "a~b",
        "a?b",
        "a#b",
        "a*b",
        "\n",
    ],
)
def test_names_that_could_leave_the_folder_or_mean_something_are_escaped(name: str) -> None:
    part = path_part(name)
    assert part not in ("", ".", "..")
    assert not set(part) & set("/\\%?#*\0\n")
    assert part[0] not in "._ "
    assert part[-1] not in ". "


def test_different_names_have_different_places() -> None:
    names = ["a", "A", "a ", " a", "a.", "~", "~20", "", "..", ".", "_a", "~5Fa", "a/b", "a~2Fb", "%", "ä", "a\u0308"]
    assert len({path_part(name) for name in names}) == len(names)
    assert table_location("/lake/", "a.b", "c") != table_location("/lake", "a", "b.c")


def test_a_document_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert storage.read_json("a/b.json") is None
    storage.write_json("a/b.json", {"x": [1, "ä"]})
    storage.write_json("a/b.json", {"x": 2})
    assert storage.read_json("a/b.json") == {"x": 2}
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b.json"]
    assert storage.holds_files("a")
    storage.delete_folder("a")
    assert not storage.holds_files("a")
    storage.delete_folder("a")


def test_a_document_may_have_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write_json("a.json", {"name": "\ud800", "number": 2**70})
    assert storage.create_json("b.json", ["\udfff", "ä"])
    assert storage.read_json("a.json") == {"name": "\ud800", "number": 2**70}
    assert storage.read_json("b.json") == ["\udfff", "ä"]
