# SPDX-License-Identifier: Apache-2.0
"""``airflow-cdc demo --airflow``: an Airflow of its own, of which nothing is left.

It needs a machine with room for a scheduler, so it runs only on demand, as ``tests/airflow/test_live``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.shop import ROOT, demand_data
from tests.system import processes

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif("CDC_WINDOWS" not in os.environ, reason="set CDC_WINDOWS to run a whole Airflow"),
]


def answer(url: str, body: dict[str, str] | None = None, token: str = "") -> Any:
    """Return what Airflow answers."""
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_the_demo_in_an_airflow_shows_the_page_and_leaves_nothing(tmp_path: Path) -> None:
    demand_data()
    command = [sys.executable, "-m", "airflow_provider_cdc.cli", "demo", "--airflow"]
    mark = tmp_path.name
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), processes.MARK: mark}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as demo:
        assert demo.stdout is not None
        watchdog = threading.Timer(1500, demo.kill)
        watchdog.start()
        shown: list[str] = []
        while not any("tables equal the database" in line for line in shown[-1:]):
            shown.append(demo.stdout.readline())
            assert shown[-1], "".join(shown)
        watchdog.cancel()
        (said,) = re.findall(r"Airflow is at (\S+): user (\S+), password (\S+)", "".join(shown))
        url, user, password = said
        token = answer(f"{url}/auth/token", {"username": user, "password": password})["access_token"]
        page = answer(f"{url}/cdc/api/pipelines/shop", token=token)["pipeline"]
        assert (page["state"], page["tables"]["ok"]) == ("ok", 9)
        assert "9 of 9 tables equal the database, 5576 rows." in shown[-1]
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
    assert list(tmp_path.iterdir()) == [] and processes.marked(mark) == []
