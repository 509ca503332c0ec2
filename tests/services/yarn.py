# SPDX-License-Identifier: Apache-2.0
"""YARN and HDFS: Hadoop's own mini cluster in one process; its containers are processes of their own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from airflow_provider_cdc.engine.java import find_java

from .java_services import JavaServices
from .process import Service

LOCK = Path(__file__).with_name("yarn.lock")
# Hadoop's injection of dependencies makes classes by reflection.
_FLAGS = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)
_OF_SPARK = ("hadoop-client-api", "hadoop-client-runtime")
_CONF = {
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",  # a container is given with the next one
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
}
_FOR_CLIENTS = ("fs.defaultFS", "yarn.resourcemanager.address", "yarn.resourcemanager.scheduler.address")


class YarnCluster(Service):
    """A resource manager, a node manager and HDFS, ready when the constructor returns, and gone after `stop`.

    :param nodes: node managers of 4 GB each; 0 for HDFS alone.
    :ivar conf: folder of the clients' configuration: `HADOOP_CONF_DIR`.
    """

    def __init__(self, nodes: int = 1) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-yarn-"))
        self.conf = self.folder / "conf"
        self.conf.mkdir()
        folders = [f"-Dtest.build.data={self.folder / 'nodes'}", f"-Dhadoop.log.dir={self.folder / 'logs'}"]
        log = self.folder / "yarn.log"
        self._java = JavaServices("YARN", LOCK, _OF_SPARK, log, (*_FLAGS, *folders), _environment())
        try:
            self._start(nodes)
        except Py4JJavaError as problem:
            text = str(problem)  # while Java is there to say it
            self.stop()
            raise RuntimeError(text) from None
        except BaseException:
            self.stop()
            raise

    def _start(self, nodes: int) -> None:
        hadoop = self._java.jvm.org.apache.hadoop
        conf = hadoop.yarn.conf.YarnConfiguration()
        own = {"hadoop.tmp.dir": str(self.folder / "tmp"), "hdfs.minidfs.basedir": str(self.folder / "hdfs")}
        for name, value in {**_CONF, **own}.items():
            conf.set(name, value)
        hdfs = getattr(hadoop.hdfs, "MiniDFSCluster$Builder")(conf).numDataNodes(1).build()
        self.hdfs = str(hdfs.getURI().toString())
        if not nodes:
            return
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
        self._java.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    """Return the environment of the services, which containers get, too: nothing of this checkout."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | {
        "JAVA_HOME": str(find_java().home)
    }


def _site(properties: Mapping[str, str]) -> str:
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items()]
    return "<configuration>\n" + "\n".join(lines) + "\n</configuration>\n"
