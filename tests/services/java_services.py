# SPDX-License-Identifier: Apache-2.0
"""A Java in which Python starts services by calls: servers that are libraries, without programs of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway

from airflow_provider_cdc.engine.jars import JarError, fetch, jar_cache
from airflow_provider_cdc.engine.java import find_java

from .process import SHORT_LIVED_JAVA, NotAvailable, Server, free_port, listens

_OF_ALL = ("py4j", "slf4j-api", "jcl-over-slf4j", "log4j-")


class JavaServices:
    """A running Java.

    :param name: what messages call it.
    :param lock: jars that it needs, and Spark has not.
    :param of_spark: beginnings of the names of Spark's jars that it needs.
    :param log: the file that its output goes to.
    :ivar jvm: its classes, by their names with dots.
    """

    def __init__(
        self,
        name: str,
        lock: Path,
        of_spark: Sequence[str],
        log: Path,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        java, port = find_java().executable, free_port()
        try:
            jars = fetch(lock, jar_cache(), java, lambda text: print(text, file=sys.stderr, flush=True))
        except JarError as problem:
            raise NotAvailable(str(problem)) from None
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        self.spark_jars = Path(spec.origin).parent / "jars"
        for beginning in (*of_spark, *_OF_ALL):
            jars += sorted(self.spark_jars.glob(f"{beginning}*.jar"))
        options = ["-Xmx400m", *SHORT_LIVED_JAVA.split(), *flags, "-cp", ":".join(map(str, jars))]
        self.server = Server(name, [str(java), *options, "py4j.GatewayServer", str(port)], log, env=env)
        self.server.wait_until(lambda: listens(port))
        # Python frees nothing in Java, which may be gone before
        parameters = GatewayParameters(port=port, enable_memory_management=False)
        self.jvm: Any = JavaGateway(gateway_parameters=parameters).jvm
