# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Kubernetes with Kubeflow's Spark operator: drivers are processes, objects follow its models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from airflow_provider_cdc.platforms.contract import Submission
from tests.services.json_server import JsonServer
from tests.services.process_platform import ProcessPlatform

_PATH = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/spark/sparkapplications"


class SparkOperator(JsonServer):
    """A namespace ``spark``.

    folder: of the drivers' processes.
    secret: content of the Secret ``cdc-shop``.
    """

    name, login = "kubernetes", "of-this-test"
    needs = ("airflow.providers.cncf", "kubeflow_spark_api")
    run: ClassVar[dict[str, Any]] = {
        "metadata": {"namespace": "spark", "labels": {"team": "cdc"}},
        "spec": {
            "image": "registry.example.com/cdc-spark:4.1",
            "sparkVersion": "4.1.3",
            "driver": {
                "cores": 1,
                "memory": "2g",
                "serviceAccount": "spark",
                "secrets": [{"name": "cdc-shop", "path": "/etc/cdc", "secretType": "Generic"}],
                "env": [{"name": "AIRFLOW_CDC_SECRETS_FILE", "value": "/etc/cdc/secrets"}],
            },
            "executor": {"instances": 2, "cores": 2, "memory": "4g"},
        },
    }
    wrong_run: ClassVar[dict[str, Any]] = {**run, "spec": {**run["spec"], "sparkVersions": "4.1.3"}}

    def __init__(self, folder: Path, secret: str) -> None:
        super().__init__()
        self.platform = ProcessPlatform(folder)
        self.tokens: list[str] = []
        self._objects: dict[str, dict[str, Any]] = {}
        self._mounted = folder.with_name("secrets of the driver")
        self._mounted.write_text(secret)

    def connection(self, login: str) -> dict[str, Any]:
        """Return a connection as the environment has it."""
        named = {"name": "there"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "there",
            "clusters": [{**named, "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{**named, "user": {"token": login}}],
            "contexts": [{**named, "context": {"cluster": "there", "user": "there"}}],
        }
        return {"conn_type": "kubernetes", "extra": {"kube_config": json.dumps(config)}}

    def answer(self, method: str, path: str, document: dict[str, Any], login: str) -> tuple[int, dict[str, Any]]:
        """Answer as the API server does."""
        name = path.removeprefix(_PATH).strip("/")
        if login != f"Bearer {self.login}":
            return _status(403, "forbidden")
        if not path.startswith(_PATH) or (name and name not in self._objects):
            return _status(404, f"{name or path} not found")
        match method:
            case "POST":
                return self._create(document)
            case "GET":
                return 200, self._shown(name)
            case "DELETE" if document.get("propagationPolicy") == "Foreground":
                self.platform.cancel(name)
                self._objects[name]["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
                return 200, self._objects[name]
        return _status(405, "not allowed")

    def stop(self) -> None:
        """Stop the server and all drivers."""
        super().stop()
        self.platform.stop()

    def _create(self, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        from kubeflow_spark_api.models import SparkV1beta2SparkApplication
        from pydantic import ValidationError

        try:
            model = SparkV1beta2SparkApplication.from_dict(document)
        except ValidationError as error:
            return _status(422, str(error))
        if model is None or model.to_dict() != document or document["kind"] != "SparkApplication":
            return _status(400, "strict decoding error: unknown field")
        name, spec = document["metadata"]["name"], document["spec"]
        if not (Path(spec["mainApplicationFile"]).is_file() and Path(spec["deps"]["pyFiles"][0]).is_file()):
            return _status(422, "the driver would not find its files")
        if name in self._objects:
            return _status(409, f"{name} already exists")
        self.tokens.append(name)
        self._objects[name] = document
        (mount,) = spec["driver"]["secrets"]
        variables = {
            one["name"]: one["value"].replace(f"{mount['path']}/secrets", str(self._mounted))
            for one in spec["driver"]["env"]
        }
        self.platform.submit(Submission(name, spec["arguments"], "", "", {}), variables)
        return 201, document

    def _shown(self, name: str) -> dict[str, Any]:
        application, state = self._objects[name], self.platform.state(name)
        if state.ended and "deletionTimestamp" in application["metadata"]:
            return self._objects.pop(name)  # the next look does not find it
        word = "RUNNING" if not state.ended else "COMPLETED" if state.text.endswith(" 0") else "FAILED"
        return {**application, "status": {"applicationState": {"state": word}}}


def _status(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "code": code, "message": message}
