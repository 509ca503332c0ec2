# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Databricks Jobs: one-time runs are processes of this machine, requests follow the API's models."""

from __future__ import annotations

import inspect
import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from airflow_provider_cdc.platforms.contract import Submission
from tests.services.process_platform import ProcessPlatform

TOKEN = "dapi-of-this-test"
_REFERENCE = re.compile(r"\{\{secrets/([^/}]+)/([^/}]+)\}\}")


class Databricks:
    """A workspace that is ready when the constructor returns.

    :param folder: of the runs' processes.
    :param secrets: texts by scope and name, which references to them become in a run's environment.
    """

    def __init__(self, folder: Path, secrets: Mapping[tuple[str, str], str]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        """Answers to the next requests, in place of the workspace's own."""
        self.platform, self._secrets = ProcessPlatform(folder), secrets
        self._tokens: list[str] = []
        self._cancelled: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def connection(self, token: str = TOKEN) -> str:
        """Return a connection as the environment has it."""
        port = self._server.server_port
        return json.dumps(
            {"conn_type": "databricks", "host": "127.0.0.1", "schema": "http", "port": port, "password": token}
        )

    def stop(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def _submit(self, request: dict[str, Any]) -> dict[str, Any]:
        from databricks.sdk.service.jobs import JobsAPI, SubmitTask

        unknown = {*request} - {*inspect.signature(JobsAPI.submit).parameters}
        if unknown or any(SubmitTask.from_dict(task).as_dict() != task for task in request["tasks"]):
            raise ValueError(f"not of the API: {unknown or request['tasks']}")
        (task,) = request["tasks"]
        token, wheel = request["idempotency_token"], task["python_wheel_task"]
        assert (wheel["package_name"], wheel["entry_point"]) == ("airflow_provider_cdc", "airflow-cdc-job")
        if len(token) > 64:
            raise ValueError("the token is too long")
        if token not in self._tokens:
            self._tokens.append(token)
        variables = task["new_cluster"].get("spark_env_vars", {})
        resolved = {
            name: _REFERENCE.sub(lambda named: self._secrets[named[1], named[2]], value)
            for name, value in variables.items()
        }
        self.platform.submit(Submission(token, wheel["parameters"], "", "", {}), resolved)
        return {"run_id": self._tokens.index(token) + 1001}

    def _run(self, run: int) -> str:
        if not 0 <= run - 1001 < len(self._tokens):
            raise ValueError(f"Run {run} does not exist.")
        return self._tokens[run - 1001]

    def _state(self, run: int) -> dict[str, Any]:
        token = self._run(run)
        state, result = self.platform.state(token), {"result_state": "SUCCESS"}
        if not state.ended:
            return {"life_cycle_state": "RUNNING", "state_message": "In run"}
        if not state.text.endswith(" 0"):
            result = {"result_state": "CANCELED" if token in self._cancelled else "FAILED"}
        return {"life_cycle_state": "TERMINATED", "state_message": state.text, **result}

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return what the API answers."""
        match path.removeprefix("/api/2.2/jobs/runs/"):
            case "submit":
                return self._submit(request)
            case "get":
                return {"run_id": int(request["run_id"]), "state": self._state(int(request["run_id"]))}
            case "cancel":
                token = self._run(int(request["run_id"]))
                self._cancelled.add(token)
                self.platform.cancel(token)
                return {}
        raise ValueError(f"no such path: {path}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        there = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})

            def do_POST(self) -> None:
                self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _serve(self, request: dict[str, Any]) -> None:
                there.requests.append(request)
                status, body = 403, {"error_code": "PERMISSION_DENIED", "message": "no"}
                if there.answers:
                    status, body = there.answers.pop(0)
                elif self.headers["Authorization"] == f"Bearer {TOKEN}":
                    try:
                        status, body = 200, there.answer(urlsplit(self.path).path, request)
                    except (ValueError, KeyError) as error:
                        status, body = 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": str(error)}
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Leave out a line for each request."""

        return Handler
