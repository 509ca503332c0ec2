# SPDX-License-Identifier: Apache-2.0
"""A repeat of a done batch and a batch without records do next to nothing: no engine, no JVM, no commit."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from tests.airflow.shop import until
from tests.sample import ALL
from tests.services.broker import Broker
from tests.system.site import Running, Site
from tests.system.verdict import ledger_faults, versions

pytestmark = pytest.mark.system


def _site(folder: Path, broker: Broker, engine: str) -> Site:
    site = Site(folder, {"bootstrap.servers": broker.bootstrap}, {"policy": {"engine": engine}})
    site.changes["spark"] = {"connection": "two"}
    site.environment = {"AIRFLOW_CONN_TWO": '{"conn_type": "spark", "host": "local[2]"}'}
    return site


def _poison(site: Site) -> Path:
    """Let every Java that a command could find leave a mark and fail; return the mark."""
    mark, home = site.folder / "java-was-started", site.folder / "poison"
    (home / "bin").mkdir(parents=True)
    for name in ("java", "spark-submit"):
        script = home / "bin" / name
        script.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
        script.chmod(0o755)
    site.environment |= {"JAVA_HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    return mark


def _untouched(site: Site) -> dict[Path, int]:
    """Return every file of the lake with the time it was written."""
    return {file: file.stat().st_mtime_ns for file in site.lake.rglob("*") if file.is_file()}


# on Spark, too, with CDC_SEEDS=2: what a repeat finds is known before an engine is chosen
@pytest.mark.parametrize("engine", ["auto", *[pytest.param("spark", marks=pytest.mark.spark)] * ALL])
def test_a_repeat_starts_nothing_and_writes_nothing(filled: Broker, tmp_path: Path, engine: str) -> None:
    site = _site(tmp_path, filled, engine)
    end = until(1 if ALL else 0)
    first = site.sync("--until", end)
    assert (first.code, first.json["status"]) == (0, "done"), first.err
    assert [batch["engine"] for batch in site.batches()] == ["inline" if engine == "auto" else engine]
    before, files = versions(site.lake), _untouched(site)
    mark = _poison(site)
    running = site.launch("sync", "--until", end)
    again = running.watched_answer()
    assert (again.code, again.json["repeated"]) == (0, True), again.err
    assert {**again.json, "seconds": 0} == {**first.json, "seconds": 0, "repeated": True}
    assert running.children == {}, "no process is started"
    assert not mark.exists()
    assert (versions(site.lake), _untouched(site)) == (before, files)
    assert ledger_faults(site, 1) == []
    work = sum(first.json["phases"].values())
    share = again.json["seconds"] / work
    print(
        f"\n{engine}: batch {first.json['seconds']:.2f} s ({work:.2f} s after the engine's start), "
        f"repeat {again.json['seconds']:.3f} s ({share:.1%}); whole commands {first.wall:.2f} and {again.wall:.2f} s"
    )


def test_a_batch_whose_publishing_was_lost_is_only_published(filled: Broker, tmp_path: Path) -> None:
    """All is in the sink, the ledger does not know: the repeat reads neither Kafka's records nor the tables again."""
    site = _site(tmp_path, filled, "inline")
    running = site.launch()
    assert running.until(lambda run: (site.log(1) / "result.json").exists())
    running.process.kill()
    killed = running.answer()
    before = versions(site.lake)
    if killed.code == 0:
        pytest.skip("the batch was published before it could be killed")
    _end_lease(site)
    began = time.monotonic()
    again = site.sync()
    print(f"\npublished again in {time.monotonic() - began:.2f} s")
    assert (again.code, again.json["status"], again.json["seq"]) == (0, "done", 1), again.err
    assert "land" not in again.err and "apply" not in again.err
    assert versions(site.lake) == before
    assert ledger_faults(site, 1) == []


def _end_lease(site: Site) -> None:
    """Let the dead holder's lease end, as time would."""
    with sqlite3.connect(site.ledger) as ledger:
        ledger.execute("UPDATE cdc_pipelines SET lease_until = '2000' || substr(lease_until, 5)")


@pytest.mark.parametrize("engine", ["inline", "spark"])
def test_an_empty_batch_starts_no_process_and_no_jvm(filled: Broker, tmp_path: Path, engine: str) -> None:
    site = _site(tmp_path, filled, "inline")
    assert site.sync().code == 0
    site.changes["policy"] = {"engine": engine}
    mark = _poison(site)
    files = _untouched(site)
    running: Running = site.launch()
    empty = running.watched_answer()
    assert (empty.code, empty.json["status"], empty.json["records"]) == (0, "nothing_to_do", 0), empty.err
    assert running.children == {}, "no process is started"
    assert not mark.exists()
    assert _untouched(site) == files
    print(f"\n{engine}: empty batch, whole command {empty.wall:.2f} s")
