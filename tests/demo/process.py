# SPDX-License-Identifier: Apache-2.0
"""Airflow in one process of its own, for all runs of the demo; its log goes to a file, its progress to the screen."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.demo.runs import MARK

ROOT = Path(__file__).parents[2]
DAGS = ROOT / "example_dags"
_LEVEL = re.compile(r"^\S+ \[(?:info|warning|error) *\] (.*?)\s*(?:\[(?:airflow\.task|task)[^\]]*\].*)?$")
_STEPS = re.compile(r"(batch \d+ of|land:|apply:)")
_STARTING_SECONDS = 300
_RUN_SECONDS = 900


class AirflowProblem(RuntimeError):
    """Airflow did not do what the demo asked for; the text ends with its log's last lines."""


class Airflow:
    """One DAG, run as often as asked.

    :param folder: its AIRFLOW_HOME and log are made there.
    :param pipeline: the YAML file the DAG's pipeline is read from.
    """

    def __init__(self, folder: Path, dag_id: str, pipeline: Path) -> None:
        self.log = folder / "airflow.log"
        home, dags = folder / "airflow", folder / "dags"
        dags.mkdir()
        shutil.copy(DAGS / f"{dag_id}.py", dags)  # alone: every run of a DAG loads all that are in its folder
        environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
            "SHOP_PIPELINE": str(pipeline),
            "TMPDIR": str(folder / "tmp"),
        }
        home.mkdir()
        (folder / "tmp").mkdir()
        script = Path(__file__).with_name("runs.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(dags), dag_id],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._say: Callable[[str], None] = lambda line: None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_ready(self) -> None:
        """Wait until the DAG is loaded."""
        answer = self._answer(_STARTING_SECONDS)
        if not answer.get("ready"):
            raise AirflowProblem(f"the DAG does not load: {answer.get('problems')}\n{self.tail()}")

    def run(self, moment: datetime, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        """Run the DAG for the interval that ends at a time.

        :param environment: added to Airflow's own.
        :param say: takes a line for every step.
        """
        self._say = say
        assert self._process.stdin is not None
        request = {"date": moment.isoformat(), "environment": dict(environment)}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise AirflowProblem(f"Airflow is gone\n{self.tail()}") from error
        answer = self._answer(_RUN_SECONDS)
        if answer["state"] != "success":
            reported = answer.get("problem") or ", ".join(f"{name}: {state}" for name, state in answer["tasks"].items())
            raise AirflowProblem(f"the run failed ({reported})\n{self.tail()}")

    def tail(self, lines: int = 25) -> str:
        """Return the end of Airflow's log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(line[:400] for line in text.splitlines()[-lines:])

    def stop(self) -> None:
        """End Airflow and what it started."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            # What waits for the next request ends at once. A run amid a batch may be tried again by Airflow;
            # Spark's driver ends with the process that started it.
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)  # its own session holds nothing else
                self._process.wait()
        self._reader.join(5)

    # ---- its output

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("a", encoding="utf-8") as log:
            for line in self._process.stdout:
                if line.startswith(MARK):
                    self._answers.put(json.loads(line.removeprefix(MARK)))
                    continue
                log.write(line)
                log.flush()
                if (result := _LEVEL.match(line.rstrip())) and _STEPS.match(result[1]):
                    self._say(result[1])
        self._answers.put(None)

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise AirflowProblem(f"Airflow did not answer within {seconds:.0f} s\n{self.tail()}") from None
        if answer is None:
            raise AirflowProblem(f"Airflow ended with code {self._process.wait()}\n{self.tail()}")
        return answer
