# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Databricks Jobs: one-time runs are processes of this machine, requests follow the API's models."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, ClassVar

from airflow_provider_cdc.platforms.contract import Submission
from tests.services.json_server import JsonServer
from tests.services.process_platform import ProcessPlatform

_REFERENCE = re.compile(r"\{\{secrets/(\w+/\w+)\}\}")


class Databricks(JsonServer):
    """A workspace.

    folder: of the runs' processes.
    secret: what a reference to a secret becomes in a run's environment.
    """

    name, login = "databricks", "dapi-of-this-test"
    needs = ("airflow.providers.databricks", "databricks.sdk")
    run: ClassVar[dict[str, Any]] = {
        "tasks": [
            {
                "new_cluster": {
                    "spark_version": "17.3.x-scala2.13",
                    "node_type_id": "m6gd.large",
                    "num_workers": 2,
                    "data_security_mode": "SINGLE_USER",
                    "spark_env_vars": {"AIRFLOW_CDC_SECRETS": "{{secrets/cdc/shop}}"},
                }
            }
        ],
        "timeout_seconds": 3600,
    }
    wrong_run: ClassVar[dict[str, Any]] = {"tasks": [{**run["tasks"][0], "depend_on": "one"}]}

    def __init__(self, folder: Path, secret: str) -> None:
        super().__init__()
        self.platform, self._secret = ProcessPlatform(folder), secret
        self.tokens: list[str] = []
        self._cancelled: set[str] = set()

    def connection(self, login: str) -> dict[str, Any]:
        """Return a connection as the environment has it."""
        return {
            "conn_type": "databricks", "host": "127.0.0.1", "schema": "http", "port": self.port, "password": login,
        }  # fmt: skip

    def answer(self, method: str, path: str, document: dict[str, Any], login: str) -> tuple[int, dict[str, Any]]:
        """Answer as the API does."""
        if login != f"Bearer {self.login}":
            return 403, {"error_code": "PERMISSION_DENIED", "message": "no"}
        try:
            match path.removeprefix("/api/2.2/jobs/runs/"):
                case "submit":
                    return 200, self._submit(document)
                case "get":
                    return 200, {"run_id": int(document["run_id"]), "state": self._state(document)}
                case "cancel":
                    token = self._token(document)
                    self._cancelled.add(token)
                    self.platform.cancel(token)
                    return 200, {}
        except ValueError as error:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": str(error)}
        return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": path}

    def stop(self) -> None:
        """Stop the server and all runs."""
        super().stop()
        self.platform.stop()

    def _submit(self, request: dict[str, Any]) -> dict[str, Any]:
        from databricks.sdk.service.jobs import JobsAPI, SubmitTask

        unknown = {*request} - {*inspect.signature(JobsAPI.submit).parameters}
        if unknown or any(SubmitTask.from_dict(task).as_dict() != task for task in request["tasks"]):
            raise ValueError(f"not of the API: {json.dumps(request)}")
        (task,) = request["tasks"]
        token, wheel = request["idempotency_token"], task["python_wheel_task"]
        if len(token) > 64 or (wheel["package_name"], wheel["entry_point"]) != (
            "airflow_provider_cdc",
            "airflow-cdc-job",
        ):
            raise ValueError("the token is too long, or there is no such entry point")
        if token not in self.tokens:
            self.tokens.append(token)
        variables = task["new_cluster"]["spark_env_vars"].items()
        resolved = {name: _REFERENCE.sub(lambda _: self._secret, value) for name, value in variables}
        self.platform.submit(Submission(token, wheel["parameters"], "", "", {}), resolved)
        return {"run_id": self.tokens.index(token) + 1001}

    def _token(self, request: dict[str, Any]) -> str:
        index = int(request["run_id"]) - 1001
        if not 0 <= index < len(self.tokens):
            raise ValueError(f"Run {request['run_id']} does not exist.")
        return self.tokens[index]

    def _state(self, request: dict[str, Any]) -> dict[str, Any]:
        token = self._token(request)
        state, result = self.platform.state(token), "SUCCESS"
        if not state.ended:
            return {"life_cycle_state": "RUNNING", "state_message": "In run"}
        if not state.text.endswith(" 0"):
            result = "CANCELED" if token in self._cancelled else "FAILED"
        return {"life_cycle_state": "TERMINATED", "state_message": state.text, "result_state": result}
