# SPDX-License-Identifier: Apache-2.0
"""A client that takes packets into a lake until it is killed or the server has no more: ``collecting.py PORT ROOT``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_cdc.connections.canal_address import CanalAddress
from airflow_provider_cdc.core.config import CanalSource
from airflow_provider_cdc.core.lake.segments import SegmentLog, segments_folder
from airflow_provider_cdc.sources import canal_drain
from airflow_provider_cdc.sources.canal_log import CanalLog

PIPELINE, DESTINATION = "capture", "example"


def segments(root: Path) -> SegmentLog:
    """Return the segments of the pipeline that the tests of captures sync."""
    return SegmentLog(str(root), segments_folder(PIPELINE, DESTINATION))


def collect(port: int, root: Path) -> None:
    """Take what the server has."""

    @contextmanager
    def right() -> Iterator[Callable[[], None]]:
        yield lambda: None

    source = CanalSource(DESTINATION, idle_seconds=0.01)
    address = CanalAddress("127.0.0.1", port, "canal", "canal")
    CanalLog(source, lambda: address, segments(root), right).collect()


if __name__ == "__main__":
    canal_drain.HELD_BYTES = 20_000  # so that there are many segments
    collect(int(sys.argv[1]), Path(sys.argv[2]))
