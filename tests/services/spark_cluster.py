# SPDX-License-Identifier: Apache-2.0
"""A standalone Spark cluster: a master and workers as processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow_provider_cdc.engine.java import find_java

from .process import SHORT_LIVED_JAVA, Server, Service, free_port

_DEPLOY = "org.apache.spark.deploy"


class SparkCluster(Service):
    """A cluster that is ready when the constructor returns, and gone after `stop`.

    :param workers: workers of one core and 1 GB each.
    :param conf: properties of master and workers.
    """

    def __init__(self, workers: int = 2, conf: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-spark-"))
        self._page = free_port()
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._properties = self.folder / "spark.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in (conf or {}).items()))
        self._properties.chmod(0o600)
        self._servers: list[Server] = []
        try:
            listen = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(self._page))
            self._servers.append(self._start("master", "master.Master", *listen))
            self._servers[0].wait_until(lambda: self._status() is not None)
            self._servers += [self._worker(number) for number in range(workers)]
            self._servers[0].wait_until(lambda: len(self.workers()) == workers)
        except BaseException:
            self.stop()
            raise

    def _worker(self, number: int) -> Server:
        host = f"127.0.0.{number + 1}"  # Spark repeats a slow task on another host only
        work = self.folder / f"worker-{number}"
        arguments = ("--host", host, "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", work)
        return self._start(f"worker {number}", "worker.Worker", *map(str, arguments), self.master, host=host)

    def _start(self, name: str, kind: str, *arguments: str, host: str = "127.0.0.1") -> Server:
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        home = Path(spec.origin).parent
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED_JAVA,
        }
        words = [f"{_DEPLOY}.{kind}", "--properties-file", str(self._properties), *arguments]
        log = self.folder / f"{name.replace(' ', '-')}.log"
        return Server(f"Spark's {name}", [str(home / "bin" / "spark-class"), *words], log, env=environment)

    def _status(self) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=10) as answer:
                status: dict[str, Any] = json.load(answer)
                return status
        except OSError:
            return None

    def workers(self) -> list[dict[str, Any]]:
        """Return the workers that the master knows as alive."""
        return [worker for worker in (self._status() or {}).get("workers", ()) if worker["state"] == "ALIVE"]

    def applications(self) -> list[dict[str, Any]]:
        """Return all applications that ran or run, with ``id`` and ``state``."""
        status = self._status() or {}
        return [*status.get("activeapps", ()), *status.get("completedapps", ())]

    def pids(self) -> list[int]:
        """Return the processes that all others of the cluster descend from."""
        return [server.root_pid for server in self._servers]

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executors."""
        self._servers[number + 1].stop(timeout=0)

    def executors(self) -> dict[int, Path]:
        """Return the working folder of each executor that runs, by its process."""
        running: dict[int, Path] = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                folder = Path(os.readlink(process / "cwd"))
            except OSError:  # gone, or another user's
                continue
            if self.folder in folder.parents and (process / "comm").read_text().strip() == "java":
                running[int(process.name)] = folder
        return running

    def replace_worker(self, number: int) -> None:
        """Start a worker again that was killed."""
        self._servers[number + 1] = self._worker(number)
        self._servers[0].wait_until(lambda: len(self.workers()) == len(self._servers) - 1)

    def stop(self) -> None:
        """Stop all processes and remove their folders."""
        while self._servers:
            self._servers.pop().stop()
        shutil.rmtree(self.folder, ignore_errors=True)
