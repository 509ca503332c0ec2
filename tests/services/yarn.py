# SPDX-License-Identifier: Apache-2.0
"""YARN and HDFS: Hadoop's own mini cluster in one process; its containers are processes of their own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from airflow_provider_cdc.engine.jars import JarError, fetch, jar_cache
from airflow_provider_cdc.engine.java import find_java

from .process import SHORT_LIVED_JAVA, NotAvailable, Server, free_port, listens

LOCK = Path(__file__).with_name("yarn.lock")
# Hadoop's injection of dependencies makes classes by reflection.
_FLAGS = ["-Xmx400m", *SHORT_LIVED_JAVA.split(), "--add-opens=java.base/java.lang=ALL-UNNAMED"]
_CONF = {
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}
_FOR_CLIENTS = ("fs.defaultFS", "yarn.resourcemanager.address", "yarn.resourcemanager.scheduler.address")


class YarnCluster:
    """A resource manager, node managers and HDFS, ready when the constructor returns, and gone after `stop`.

    :param nodes: node managers of 4 GB each.
    :ivar conf: folder of the clients' configuration: `HADOOP_CONF_DIR`.
    """

    def __init__(self, nodes: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-yarn-"))
        self.conf = self.folder / "conf"
        self.conf.mkdir()
        port = free_port()
        self._server: Server | None = None
        try:
            self._server = Server("YARN", self._command(port), self.folder / "yarn.log", env=_environment())
            self._server.wait_until(lambda: listens(port))
            self._start(port, nodes)
        except Py4JJavaError as problem:
            text = str(problem)  # while Java is there
            self.stop()
            raise RuntimeError(text) from None
        except BaseException:
            self.stop()
            raise

    def _command(self, port: int) -> list[str]:
        """Return the command of a Java in which Python starts the services."""
        java = find_java().executable
        try:
            jars = fetch(LOCK, jar_cache(), java, lambda text: print(text, file=sys.stderr, flush=True))
        except JarError as problem:
            raise NotAvailable(str(problem)) from None
        folders = [f"-Dtest.build.data={self.folder / 'nodes'}", f"-Dhadoop.log.dir={self.folder / 'logs'}"]
        classes = ":".join([*map(str, jars), *map(str, _spark_jars())])
        return [str(java), *_FLAGS, *folders, "-cp", classes, "py4j.GatewayServer", str(port)]

    def _start(self, port: int, nodes: int) -> None:
        # Python frees nothing in Java, which may be gone before
        java: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port, enable_memory_management=False)).jvm
        hadoop = java.org.apache.hadoop
        conf = hadoop.yarn.conf.YarnConfiguration()
        own = {"hadoop.tmp.dir": str(self.folder / "tmp"), "hdfs.minidfs.basedir": str(self.folder / "hdfs")}
        for name, value in {**_CONF, **own}.items():
            conf.set(name, value)
        hdfs = getattr(hadoop.hdfs, "MiniDFSCluster$Builder")(conf).numDataNodes(1).build()
        self.hdfs = str(hdfs.getURI().toString())
        conf.set("fs.defaultFS", self.hdfs)
        self._yarn = hadoop.yarn.server.MiniYARNCluster("yarn", nodes, 1, 1)
        self._yarn.init(conf)
        self._yarn.start()
        assert self._yarn.waitForNodeManagersToConnect(30_000)
        known = self._yarn.getConfig()
        (self.conf / "core-site.xml").write_text(_site({name: known.get(name) for name in _FOR_CLIENTS}))
        shutil.copy(self.conf / "core-site.xml", self.conf / "yarn-site.xml")  # it has the last word on YARN's names

    def _contexts(self) -> Any:
        return self._yarn.getResourceManager().getRMContext().getRMApps()

    def applications(self) -> dict[str, str]:
        """Return the state of each application by its id."""
        applications = list(self._contexts().values())
        return {one.getApplicationId().toString(): one.getState().toString() for one in applications}

    def diagnostics(self) -> str:
        """Return what YARN says of its applications on its page, where everybody reads it."""
        return "\n".join(str(one.getDiagnostics().toString()) for one in self._contexts().values())

    def containers(self, application: str) -> dict[int, str]:
        """Return an application's Java processes with the names of their containers; its master's ends in _000001."""
        running: dict[int, str] = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                folder, words = os.readlink(process / "cwd"), (process / "cmdline").read_bytes().split(b"\0")
            except OSError:  # gone, or another user's
                continue
            if f"/{application}/container_" in folder and words[0].endswith(b"java"):
                running[int(process.name)] = folder.rpartition("/")[2]
        return running

    def stop(self) -> None:
        """Stop all processes and remove their folders."""
        if self._server is not None:
            self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> YarnCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _spark_jars() -> list[Path]:
    """Return Hadoop's client, Python's gateway and what they log with: Spark has them."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    names = ("hadoop-client-api", "hadoop-client-runtime", "py4j", "slf4j-api", "jcl-over-slf4j", "log4j-")
    return sorted(jar for name in names for jar in (Path(spec.origin).parent / "jars").glob(f"{name}*.jar"))


def _environment() -> dict[str, str]:
    """Return the environment of the services, which containers get, too: nothing of this checkout."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | {
        "JAVA_HOME": str(find_java().home)
    }


def _site(properties: Mapping[str, str]) -> str:
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()]
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"
