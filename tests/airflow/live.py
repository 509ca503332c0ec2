# SPDX-License-Identifier: Apache-2.0
"""A whole Airflow: scheduler, DAG processor, triggerer and API server, with PostgreSQL for its metadata."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.services.process import Server, Service, free_port, listens

PATIENCE = 3600
"""Seconds for all runs of a DAG: machines are busy otherwise."""
ENDED = ("success", "failed", "skipped", "upstream_failed")


class LiveAirflow(Service):
    """An Airflow that runs when the constructor returns, and is gone after `stop`.

    :param conninfo: an empty PostgreSQL database.
    :param folder: home, and in ``dags`` the DAG files.
    :param environment: connections and whatever the DAGs read.
    """

    def __init__(self, conninfo: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._conninfo, self.folder = conninfo, folder
        self.dags = folder / "dags"
        port, database = free_port(), conninfo.replace("postgresql://", "postgresql+psycopg://")
        settings = {
            "CORE__DAGS_FOLDER": str(self.dags),
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": "4",
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "API__PORT": str(port),
            "API__HOST": "127.0.0.1",
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": "a secret of this test, long enough to sign with it, nothing else",
            "DATABASE__SQL_ALCHEMY_CONN": database,
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
            "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            # one that died is replaced soon
            "TRIGGERER__JOB_HEARTBEAT_SEC": "2",
            "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
            "WORKERS__EXECUTION_API_TIMEOUT": "120",  # of a machine that is busy otherwise
            "LOGGING__BASE_LOG_FOLDER": str(folder / "logs"),
        }
        self.environment = {
            **os.environ,
            **environment,
            "AIRFLOW_HOME": str(folder),
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
        }
        self._servers: list[Server] = []
        self._command("db", "migrate")
        self._port = port
        for name in ("api-server", "dag-processor", "triggerer", "scheduler"):
            self._servers.append(self._start(name))

    def _start(self, name: str) -> Server:
        server = Server(
            f"Airflow's {name}", [sys.executable, "-m", "airflow", name], self.folder / f"{name}.log",
            env=self.environment,
        )  # fmt: skip
        if name == "api-server":  # tasks that start before it fail
            server.wait_until(lambda: listens(self._port), timeout=300)
        return server

    def replace(self, name: str) -> None:
        """Kill a server with all of its processes, and start it again."""
        index = next(i for i, server in enumerate(self._servers) if server.name == f"Airflow's {name}")
        self._servers[index].stop(timeout=0)
        self._servers[index] = self._start(name)

    def get(self, path: str, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
        """Return what the API server answers to one of its users, who are all administrators.

        :param path: from the server's root on.
        """
        address = f"http://127.0.0.1:{self._port}"
        with urllib.request.urlopen(f"{address}/auth/token") as answer:
            token = json.load(answer)["access_token"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{address}{path}", data, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call Airflow's API."""
        return self.get(f"/api/v2{path}", method, body)

    def trigger(self, dag: str) -> None:
        """Start a run of a DAG, as soon as the DAG is known."""
        self.wait(lambda: self._query("SELECT 1 FROM dag WHERE dag_id = %s AND NOT is_stale", dag) != [], 120)
        self.call("POST", f"/dags/{dag}/dagRuns", {"logical_date": None})

    def stop(self) -> None:
        """Stop all processes."""
        while self._servers:
            self._servers.pop().stop(timeout=1)  # nothing of it is needed any more

    @property
    def log(self) -> str:
        """Return the ends of all servers' logs, and the errors of all tasks."""
        errors = [
            f"{file.relative_to(self.folder)}: {line[:1000]}"
            for file in sorted((self.folder / "logs").glob("dag_id=*/**/*.log"))
            for line in file.read_text(errors="replace").splitlines()
            if '"level":"error"' in line
        ]
        ends = [f"--- {server.name}\n{server.tail(5)}" for server in self._servers]
        return "\n".join([*ends, "--- errors of tasks", *errors])

    def backfill(self, dag: str, first: str, last: str, *options: str) -> None:
        """Create a backfill with three runs at a time, when the one before it has ended."""
        self.wait(lambda: self._query("SELECT 1 FROM dag WHERE dag_id = %s", dag) != [], 120)
        running = "SELECT 1 FROM backfill WHERE dag_id = %s AND completed_at IS NULL"
        self.wait(lambda: not self._query(running, dag), 120)
        window = ("--from-date", first, "--to-date", last)
        self._command("backfill", "create", "--dag-id", dag, *window, "--max-active-runs", "3", *options)

    def named_tasks(self, dag: str) -> dict[str, str]:
        """Return the states of a DAG's task instances by task id."""
        query = "SELECT task_id, state FROM task_instance WHERE dag_id = %s ORDER BY start_date NULLS FIRST"
        return {task: str(state) for task, state in self._query(query, dag)}

    def value(self, dag: str, task: str, key: str = "return_value") -> Any:
        """Return what a task returned last, or what else it has in XCom."""
        query = "SELECT value FROM xcom WHERE dag_id = %s AND task_id = %s AND key = %s"
        return self._query(f"{query} ORDER BY timestamp DESC LIMIT 1", dag, task, key)[0][0]

    def tasks(self, dag: str) -> list[tuple[str, str, int]]:
        """Return run id, state and number of the last try of every task instance of a DAG, by logical date."""
        return [
            (run, str(state), tries)
            for run, state, tries in self._query(
                "SELECT t.run_id, t.state, t.try_number FROM task_instance t JOIN dag_run r USING (dag_id, run_id)"
                " WHERE t.dag_id = %s ORDER BY r.logical_date",
                dag,
            )
        ]

    def wait_for_tasks(self, dag: str, number: int, since: int = -1) -> list[tuple[str, str, int]]:
        """Wait until so many task instances of a DAG have ended; return all.

        :param since: number of tries that they had before; a skipped one has none.
        """

        def ended() -> bool:
            tasks = self.tasks(dag)
            done = [state for _, state, tries in tasks if state in ENDED and tries > since]
            return len(done) >= number

        self.wait(ended, PATIENCE)
        return self.tasks(dag)

    def wait(self, ready: Any, seconds: float) -> None:
        """Wait until something holds; fail with the servers' logs otherwise."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline and all(server.running for server in self._servers), self.log
            time.sleep(0.5)

    def _command(self, *arguments: str) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments], env=self.environment, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
        return run.stdout

    def _query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._conninfo) as connection:
            return list(connection.execute(text, values))  # type: ignore[arg-type]


def connection(settings: Mapping[str, Any]) -> str:
    """Return a Kafka connection as the environment holds it."""
    return json.dumps({"conn_type": "kafka", "extra": dict(settings)})
