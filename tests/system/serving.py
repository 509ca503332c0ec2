# SPDX-License-Identifier: Apache-2.0
"""`airflow-cdc serve` while it works: what it has printed, and the processes of its batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.system import processes
from tests.system.site import Running, Site


class Folder(Site):
    """The pipelines of a site's folder."""

    def file(self) -> Path:
        """Write the site's pipeline, and return what commands get."""
        return super().file().parent


def lines(running: Running) -> list[dict[str, Any]]:
    """Return what it has printed so far."""
    *whole, _ = running.out.read_text().split("\n")
    return [json.loads(line) for line in whole]


def done(running: Running, records: int = 0) -> bool:
    """Return whether its batches have read so many records, and at least one did."""
    read = [line["records"] for line in lines(running) if line["status"] == "done"]
    return bool(read) and sum(read) >= records


def writing(running: Running, lake: Path) -> list[int]:
    """Return the processes of batches that write: the fork server's children."""
    if not (lake / "_cdc").exists():
        return []  # imports start processes, too
    mine = processes.descendants(running.process.pid)
    return [pid for pid in mine if "forkserver" in processes.command(pid)][1:]
