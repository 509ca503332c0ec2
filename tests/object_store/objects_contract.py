# SPDX-License-Identifier: Apache-2.0
"""Demand of a store what each kind of store has to do, whatever it is on."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_cdc.core.lake.object_store import Objects

LEFT = ["data/new folder/a.bin"]


def left_by_contract(objects: Objects) -> list[str]:
    """Go through the contract on a store that has nothing below its root; return the names that are left."""
    assert objects.names("") == objects.folders("") == objects.names("log") == []
    assert objects.entries("log") == ([], []) and not objects.holds_any("log")
    assert objects.read("log/1/claim.json") is None
    objects.delete_all("log")
    _written(objects)
    _listed(objects)
    _opened(objects)
    _removed(objects)
    return objects.names("")


def _written(objects: Objects) -> None:
    for durable in (True, False):
        name = f"log/1/claim-{durable}.json"
        assert objects.create(name, b"one", durable=durable) and not objects.create(name, b"two", durable=durable)
        assert objects.read(name) == b"one"
        objects.put(name, b"three", durable=durable)
        assert objects.read(name) == b"three"
    with ThreadPoolExecutor(6) as threads:
        won = list(threads.map(lambda by: objects.create("log/2/claim.json", b"%d" % by), range(6)))
    assert won.count(True) == 1 and objects.read("log/2/claim.json") == b"%d" % won.index(True)
    assert abs(objects.modified("log/2/claim.json") - time.time()) < 60


def _listed(objects: Objects) -> None:
    objects.put("log/10/a/b.json", b"")
    objects.put("log/end.json", b"ends")
    assert objects.folders("log") == ["1", "10", "2"]
    assert objects.folders("log", after="1") == ["10", "2"]
    assert objects.entries("log") == (["1", "10", "2"], [("end.json", 4)])
    assert objects.names("log/10") == ["a/b.json"]
    assert objects.names("") == [f"log/{name}" for name in objects.names("log")]
    assert objects.read("log/10") is None, "it is a folder"
    file = "log/end.json"
    assert objects.names(file) == [] and objects.entries(file) == ([], []) and not objects.holds_any(file)
    assert objects.holds_any("log/10") and not objects.holds_any("log/3")


def _opened(objects: Objects) -> None:
    content = bytes(range(256)) * 1024
    with objects.open_new("data/new folder/a.bin") as file:
        for start in range(0, len(content), 100_000):
            file.write(content[start : start + 100_000])
    with objects.open("data/new folder/a.bin") as file:
        assert file.read(3) == content[:3]
        assert file.seek(-5, io.SEEK_END) == len(content) - 5 and file.read() == content[-5:]
        file.seek(7)
        assert io.BufferedReader(file, 1 << 10).read(5_000) == content[7:5_007]
    with pytest.raises(FileNotFoundError):
        objects.open("data/none.bin")


def _removed(objects: Objects) -> None:
    objects.delete("log/1/claim-True.json")
    assert objects.names("log/1") == ["claim-False.json"]
    objects.delete_all("log/1")
    assert not objects.holds_any("log/1") and objects.holds_any("log/10")
    objects.delete_all("log/10/a", traces=True)
    assert objects.holds_any("log") and objects.folders("log") in (["2"], ["10", "2"])
    objects.delete_all("log/end.json")
    assert objects.read("log/end.json") == b"ends", "it is not a folder"
    objects.delete_all("log", traces=True)
    assert objects.names("log") == []
