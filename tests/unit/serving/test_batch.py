# SPDX-License-Identifier: Apache-2.0
"""The process of one batch of a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import logging, sys
from multiprocessing import Pipe
from airflow_provider_cdc.serving.batch import run
logging.basicConfig(stream=sys.stdout, level=logging.INFO)  # as Airflow sets it up
mine, its = Pipe()
run(sys.argv[1], its)
logging.info("a library says something")
print(mine.recv()["error"]["code"], file=sys.stderr)
"""


def test_what_a_library_logs_is_none_of_the_servers_lines(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "none.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-2:] == ["INFO:root:a library says something", "configuration"]
