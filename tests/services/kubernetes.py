# SPDX-License-Identifier: Apache-2.0
"""The API of Kubernetes as its Java client's own tests have it, and one node that runs Spark's pods as processes.

It stores what is created, without the checks of a real server: tests check the objects themselves. It knows no
server-side apply, which Spark's client needs for a driver in the cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any

from airflow_provider_cdc.engine.java import find_java

from .java_services import JavaServices
from .process import Service

LOCK = Path(__file__).with_name("kubernetes.lock")
_OF_SPARK = (
    "kubernetes-",
    "jackson-",
    "netty-",
    "vertx-",
    "snakeyaml",
    "zjsonpatch",
    "commons-",
    "guava",
    "failureaccess",
)
_NAMESPACE = "api/v1/namespaces/default"
_PODS = f"{_NAMESPACE}/pods"
_KINDS = ("pods", "configmaps", "secrets", "services", "persistentvolumeclaims")
_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
# option of the backend -> variable of its pod: what the image's entrypoint.sh does
_OPTIONS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


class Kubernetes(Service):
    """A server that is ready when the constructor returns, and gone with its pods after `stop`.

    :ivar master: its address as Spark has it.
    :ivar seen: all objects that were there at any moment, by kind and name, as they were first.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-kubernetes-"))
        self._java = JavaServices("Kubernetes", LOCK, _OF_SPARK, self.folder / "kubernetes.log")
        io = self._java.jvm.io.fabric8
        mock, web = io.kubernetes.client.server.mock, io.mockwebserver
        requests = self._java.jvm.java.util.HashMap()
        self._api = mock.KubernetesMockServer(
            web.Context(), web.MockWebServer(), requests, mock.KubernetesCrudDispatcher(), False
        )
        self._api.init()
        self._url = f"http://127.0.0.1:{self._api.getPort()}"
        self.master = f"k8s://{self._url}"
        self.seen: dict[tuple[str, str], dict[str, Any]] = {}
        self._pods: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = threading.Event()
        self._node = threading.Thread(target=self._run_pods, daemon=True)
        self._node.start()

    def _ask(self, path: str, document: Any | None = None) -> Any:
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self._url}/{path}", data, {"Content-Type": "application/json"})
        request.method = "GET" if document is None else "PUT"
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def _run_pods(self) -> None:
        """Run what pods of executors are there, and end those that are gone."""
        while not self._stopping.wait(0.1):
            with contextlib.suppress(OSError):
                for kind in _KINDS:
                    for item in self._ask(f"{_NAMESPACE}/{kind}")["items"]:
                        self.seen.setdefault((kind, item["metadata"]["name"]), item)
                there = {pod["metadata"]["name"]: pod for pod in self._ask(_PODS)["items"]}
                for name in there.keys() - self._pods.keys():
                    self._pods[name] = self._start(there[name])
                    there[name]["status"] = {"phase": "Running", "podIP": "127.0.0.1"}
                    self._ask(f"{_PODS}/{name}", there[name])
                for name in self._pods.keys() - there.keys():
                    self._pods[name].kill()

    def _start(self, pod: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Start what the image's entrypoint.sh starts."""
        name = pod["metadata"]["name"]
        (container,) = pod["spec"]["containers"]
        assert container["args"] == ["executor"]
        stated = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
        stated |= {"SPARK_EXECUTOR_POD_IP": "127.0.0.1", "SPARK_EXECUTOR_POD_NAME": name}
        folder = self.folder / name
        folder.mkdir()
        flags = [value for key, value in stated.items() if key.startswith("SPARK_JAVA_OPT_")]
        flags += [f"-Xmx{stated['SPARK_EXECUTOR_MEMORY']}", "-cp", f"{self._java.spark_jars}/*", _BACKEND]
        options = [part for option, key in _OPTIONS.items() for part in (option, stated[key])]
        home = {"PATH": os.environ["PATH"], "SPARK_HOME": str(self._java.spark_jars.parent)}
        node = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder)}
        with (folder / "log").open("wb") as log:
            return subprocess.Popen(
                [str(find_java().executable), *flags, *options],
                env={**home, **stated, **node}, cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip

    def stop(self) -> None:
        """Stop server and pods, and remove their folders."""
        self._stopping.set()
        self._node.join()
        for pod in self._pods.values():
            pod.kill()
            pod.wait()
        self._java.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
