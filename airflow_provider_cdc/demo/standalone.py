# SPDX-License-Identifier: Apache-2.0
"""Run an Airflow of the demo's own: ``airflow standalone`` in a folder, with one DAG and the page on its pipeline."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from datetime import datetime
from pathlib import Path

from airflow_provider_cdc.core.errors import ConfigurationError

DAG_ID, USER = "shop_hourly", "demo"
_USUAL_PORT = 8080
_STARTING_SECONDS = 600.0
_ENDING_SECONDS = 10.0

_DAG = """\
from datetime import datetime

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcReceivedSensor, CdcSyncOperator

hourly, first = CronDataIntervalTimetable("@hourly", timezone="UTC"), datetime.fromisoformat({first!r})
with DAG({dag!r}, schedule=hourly, start_date=first, catchup=True, max_active_runs=1, tags=["cdc"]):
    received = CdcReceivedSensor(task_id="received", pipeline={file!r}, deferrable=True, timeout=3600)
    received >> CdcSyncOperator(task_id="sync", pipeline={file!r}, retries=3)
"""


class Standalone:
    """An Airflow that starts with the constructor, and is gone with all of its processes after :meth:`stop`.

    :param folder: its home, its log and the DAG are made there.
    :param file: of the pipeline.
    :param ledger: the ledger's URL.
    :param first: when the first hour of the DAG begins; the hours since then are caught up.
    :ivar url: where its UI is, for a login with ``USER`` and ``password``.
    """

    def __init__(self, folder: Path, file: Path, ledger: str, first: datetime) -> None:
        home, dags = self.made(folder)
        home.mkdir()
        dags.mkdir()
        self.log = home / "standalone.log"
        self.password, port = secrets.token_urlsafe(9), _free_port()
        self.url = f"http://127.0.0.1:{port}"
        (dags / f"{DAG_ID}.py").write_text(_DAG.format(first=first.isoformat(), dag=DAG_ID, file=str(file)))
        passwords = home / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({USER: self.password}))
        settings = {
            "API__HOST": "127.0.0.1",
            "API__PORT": str(port),
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": secrets.token_urlsafe(48),
            "CDC__PAGE_LEDGERS": ledger,
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "CORE__DAGS_FOLDER": str(dags),
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__PARALLELISM": "2",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        }
        own = {f"AIRFLOW__{name}": value for name, value in settings.items()}
        # it starts the program ``airflow``
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        others = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
                env={**others, **own, "AIRFLOW_HOME": str(home), "PATH": programs}, start_new_session=True,
            )  # fmt: skip

    @staticmethod
    def made(folder: Path) -> tuple[Path, Path]:
        """Return what is made in a folder: Airflow's home, and the folder of its DAG."""
        return folder / "airflow", folder / "dags"

    def wait_until_ready(self) -> None:
        """Wait until its API answers.

        :raises ConfigurationError: it ends, or does not answer in time; with the end of its log.
        """
        deadline = time.monotonic() + _STARTING_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])
                raise ConfigurationError([f"Airflow does not start; the end of its log:\n{tail}"])
            time.sleep(0.5)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/version", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End all of its processes."""
        for number, seconds in ((signal.SIGTERM, _ENDING_SECONDS), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)


def _free_port() -> int:
    """Return the port that Airflow usually has, or another one where that is taken."""
    for port in (_USUAL_PORT, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise ConfigurationError(["no port of 127.0.0.1 is free"])
