# SPDX-License-Identifier: Apache-2.0
"""A Spark application that takes many batches of `airflow-cdc serve`, and what ends it."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest
import yaml

from tests.airflow.shop import demand_data
from tests.services.broker import Broker
from tests.system import processes
from tests.system.serving import Folder, lines, writing
from tests.system.site import Running, Site, feed
from tests.system.trials import site_of
from tests.system.verdict import doubled_commits, unequal

pytestmark = [pytest.mark.system, pytest.mark.spark]

SECRET = "kept5ecret"


def jvms(running: Running) -> list[int]:
    """Return the applications that are there."""
    return [pid for pid, line in running.watch().items() if "pyspark-shell" in line and "java" in line.split()[0]]


def secret_places(running: Running, folder: Path) -> list[str]:
    """Return where the secret is that others could see: command lines, and files that were written."""
    shown = [line for pid, line in running.watch().items() if SECRET in line]
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if file.is_file() and SECRET.encode() in file.read_bytes():
                shown.append(str(file))
    return shown


def caught_up(running: Running, sites: list[Site], phase: int) -> bool:
    """Wait until batches find nothing more to do; return whether the tables are those of the source then."""
    before = len(lines(running))

    def idle(run: Running) -> bool:
        statuses: dict[str, list[str]] = {}
        for line in lines(run)[before:]:
            statuses.setdefault(line["file"], []).append(line["status"])
        # the first of these batches may have looked at the log before it had all
        return len(statuses) == len(sites) and all(
            len(some) > 1 and some[-1] == "nothing_to_do" for some in statuses.values()
        )

    return running.until(idle) and [unequal(site, phase) for site in sites] == [{} for _ in sites]


def test_batches_of_two_pipelines_take_one_application_until_one_needs_another(broker: Broker, tmp_path: Path) -> None:
    demand_data()
    sites = [site_of(tmp_path / name, broker, "spark", f"kept{name}", kind=Folder) for name in ("one", "two")]
    served, other = sites
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    served.connection = {**served.connection, "sasl.password": SECRET}
    served.environment = {"TMPDIR": str(temporary)}

    def serve_other() -> None:
        (served.folder / "other.yaml").write_text(yaml.safe_dump(other.document()))

    serve_other()
    for site in sites:
        feed(broker, 0, 0, f"kept{site.folder.name}")
    running = served.launch("serve", "--every", "1")
    assert caught_up(running, sites, 0)
    (first,) = jvms(running)
    assert secret_places(running, temporary) == []
    for site in sites:
        feed(broker, 1, 1, f"kept{site.folder.name}")
    assert caught_up(running, sites, 1)
    assert jvms(running) == [first]
    assert secret_places(running, temporary) == []

    other.changes["spark"] = {"conf": {"spark.task.maxFailures": 2}, "keep_seconds": 2}
    serve_other()
    for site in sites:
        feed(broker, 2, 2, f"kept{site.folder.name}")
    assert running.until(lambda run: len(jvms(run)) == 2), "an application starts with the settings of one pipeline"
    assert caught_up(running, sites, 2)
    assert running.until(lambda run: jvms(run) == [first]), "it ends when nothing was to be done for that long"
    assert [line["error"] for line in lines(running) if line["status"] == "failed"] == []
    running.process.send_signal(signal.SIGTERM)
    assert (running.answer().code, running.left()) == (0, [])
    assert list(temporary.glob("airflow-cdc-*")) == []
    assert [doubled_commits(site.lake) for site in sites] == [[], []]


def test_what_is_killed_is_finished_by_another_application(broker: Broker, tmp_path: Path) -> None:
    demand_data()
    site = site_of(tmp_path / "killed", broker, "spark", "keptkilled", lease_seconds=2)
    feed(broker, 0, 0, "keptkilled")
    running = site.launch("serve", "--every", "1")
    assert caught_up(running, [site], 0)
    (first,) = jvms(running)

    def applying(run: Running) -> bool:
        return (site.log(site.next_seq()) / "manifest.json").exists()

    feed(broker, 1, 1, "keptkilled")
    assert running.until(applying)
    assert processes.kill(first)
    assert caught_up(running, [site], 1)
    (second,) = jvms(running)
    codes = {line["error"]["code"] for line in lines(running) if line["status"] == "failed"}
    assert codes == {"engine.crashed"}

    feed(broker, 2, 2, "keptkilled")
    assert running.until(applying)
    assert any([processes.kill(pid) for pid in writing(running, site.lake)])
    assert caught_up(running, [site], 2)
    assert second not in jvms(running), "nothing of a dead batch goes on"
    running.process.kill()
    running.process.wait()
    assert running.left() == []
    assert doubled_commits(site.lake) == []
