# SPDX-License-Identifier: Apache-2.0
"""Be the driver of an application whose JVM was there before this process and stays after it."""

from __future__ import annotations

import shutil
import signal
import threading
from typing import Any


def attach() -> Any:
    """Return the context of the JVM that the environment names; its first driver makes it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway()
    jvm = gateway.jvm
    java = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    interrupt = signal.getsignal(signal.SIGINT)
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)  # which a context takes
    return context


def detach(context: Any) -> None:
    """Leave nothing of this driver behind: its folder, and what the JVM keeps for it until it lets go of it.

    This process may attach again.
    """
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    shutil.rmtree(context._temp_dir, ignore_errors=True)
    objects = JavaObject("GATEWAY_SERVER", context._gateway._gateway_client).getGateway().getBindings()
    numbered = context._jvm.java.util.regex.Pattern.compile(r"o\d+").asMatchPredicate()
    objects.keySet().removeIf(numbered)
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
