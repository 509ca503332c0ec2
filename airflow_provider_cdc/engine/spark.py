# SPDX-License-Identifier: Apache-2.0
"""Run each batch as one Spark application.

Where a connection names Spark, the Spark provider's hook submits it. Without one Spark is a process of this machine,
as the inline engine is: to load Airflow for its hook would take as long as Spark itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from airflow_provider_cdc.connections.lookup import SparkTarget, spark_target
from airflow_provider_cdc.core.config import SparkSettings
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from airflow_provider_cdc.engine import kept_spark
from airflow_provider_cdc.engine.cache import cache_folder, writing
from airflow_provider_cdc.engine.class_archive import ClassArchive, class_archive
from airflow_provider_cdc.engine.cluster_driver import LOGGING as CLIENT_LOGGING
from airflow_provider_cdc.engine.cluster_driver import ClusterDriver
from airflow_provider_cdc.engine.jars import fetch, jar_cache, lock_of, spark_line
from airflow_provider_cdc.engine.java import JavaNotFound, find_java
from airflow_provider_cdc.engine.kept_spark import Start, Wish, run_kept
from airflow_provider_cdc.engine.process import run_process
from airflow_provider_cdc.engine.spark_hook import bound_hook, submit
from airflow_provider_cdc.engine.task import (
    LAST_LINES,
    PROCESS_SETTINGS,
    EngineTask,
    conf_text,
    read_result,
)

# The driver lives for seconds: the optimising compiler and a parallel collector would cost more than they gain.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

# The driver's first line; a driver in a cluster writes it to the cluster's log.
_SESSION_JARS = ("delta-spark", "spark-sql-kafka")  # who names one of them names all
_APPLICATION = re.compile(r"Spark application ([\w.-]+)")

# an application that goes on remembers little of what it did
_KEPT = {
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    # the JVM keeps the socket of each driver until it collects garbage
    "spark.cleaner.periodicGC.interval": "5min",
}

_NOISE = ("WARNING: Using incubator modules", "WARN SparkConf: Note that spark.local.dir will be overridden")
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.address.name = org.apache.spark.util.Utils
logger.address.level = error
"""


def run_spark(task: EngineTask, settings: SparkSettings) -> Result:
    """Run a batch and return its result.

    :raises ConfigurationError: the connection, Java or Spark is missing or wrong.
    :raises UnavailableError: Spark crashed, or was stopped.
    """
    target = spark_target(settings.connection)
    in_cluster = _check_target(target)
    if (result := _run_kept(task, settings, target)) is not None:
        return result
    if target.secret is not None:
        task = replace(task, secrets={**task.secrets, "spark": {"spark.authenticate.secret": target.secret}})
    driver = ClusterDriver(task, settings, target) if in_cluster else None
    environment = task.environment(**_programs(settings, target))
    if driver is not None:
        environment = driver.environment(environment)
        if target.master.startswith("yarn"):  # of Kubernetes' client the hook reads more
            own = f"{environment.get('SPARK_SUBMIT_OPTS', '')} {_java_options(task, CLIENT_LOGGING)}"
            environment["SPARK_SUBMIT_OPTS"] = own.strip()
    if _in_one_process(target):
        environment["PYTHONPATH"] = _with_payload(task, environment)
    last: deque[str] = deque(maxlen=LAST_LINES)
    forward = _forwarded(task, last, driver)
    archive = None if driver is not None else _class_archive(task, environment)
    conf = _conf(task, settings, target, archive)
    if settings.connection is None:
        application = [str(task.payload.main), str(task.job), str(task.result)]
        command = _command(target, conf, f"airflow-cdc {task.name}", *application)
        code = run_process(task, command, environment, _without_noise(forward))
    else:
        arguments = [str(task.job), str(task.result)] if driver is None else driver.arguments
        form = {"conf": conf, "application_args": arguments, "spark_binary": _binary(target)}
        if not _in_one_process(target):
            form["py_files"] = str(task.payload.archive)
        hook = bound_hook(settings.connection, target, task, _without_noise(forward), **form)
        end = (lambda: None) if driver is None else partial(driver.kill, _binary(target), environment)
        problem = submit(hook, task, environment, end)
        code = 1 if problem else 0
        if problem and not last:
            last.append(problem)
    if archive is not None:
        archive.ended(well=code == 0)
    if driver is not None:
        driver.collect(forward)
    return read_result(task, list(last), code)


def _forwarded(task: EngineTask, last: deque[str], driver: ClusterDriver | None = None) -> Callable[[str], None]:
    """Return what takes each line of the engine's output.

    :param last: keeps the last ones, for an error.
    :param driver: the driver in a cluster that has the application, None where it is here.
    """

    def forward(line: str) -> None:
        task.hear(line, last)
        if driver is not None:
            driver.hear(line)
        elif (started := _APPLICATION.fullmatch(line)) is not None:
            task.on_application(started[1])

    return forward


def _with_payload(task: EngineTask, environment: Mapping[str, str]) -> str:
    """Return the module path of Spark's processes on this machine."""
    return os.pathsep.join(filter(None, [str(task.payload.folder), environment.get("PYTHONPATH")]))


def _run_kept(task: EngineTask, settings: SparkSettings, target: SparkTarget) -> Result | None:
    """Run the batch in an application that goes on afterwards; None where it needs one of its own.

    A session's jars, and what it sets for a store, are of one pipeline.
    """
    other_python = settings.python or any(key.startswith("spark.pyspark.") for key in settings.conf)
    own = task.session or other_python or target.extra or target.secret or not settings.keep_seconds
    if kept_spark.borrow is None or own or not _in_one_process(target) or _spark_home() is None:
        return None
    wish = Wish(json.dumps([target.master, settings.conf], sort_keys=True), settings.keep_seconds)
    try:
        application = kept_spark.borrow(wish, partial(_start, task, settings, target), task.stopper.check)
    except CdcError:
        _forget_archive(task, settings, target)
        raise
    if application is None:
        return None
    last: deque[str] = deque(maxlen=LAST_LINES)
    environment = task.environment(PYSPARK_PYTHON=sys.executable, PYTHONHASHSEED="0")
    code = run_kept(task, application, environment, _forwarded(task, last))
    if code:
        raised = list(last)
        if application.is_gone():
            raised = []  # a driver's lines show only that
            _forget_archive(task, settings, target)
        last.clear()
        for line in application.lines():
            _without_noise(partial(task.hear, last=last))(line)
        last.extend(raised)
    return read_result(task, list(last), code)


def _start(task: EngineTask, settings: SparkSettings, target: SparkTarget, folder: Path) -> Start | None:
    """Return how an application is started that batches can be handed to, None where its code would not be ours.

    :param folder: the application's own.
    """
    if task.payload != kept_spark.loaded:  # another version was installed since
        return None
    task = replace(task, scratch=folder, secrets={})
    environment = task.environment(**_programs(settings, target))
    environment["PYTHONPATH"] = _with_payload(task, environment)
    environment["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(folder / kept_spark.GATEWAY_FILE)
    archive = _class_archive(task, environment)
    if archive is not None:
        archive = replace(archive, output=None)  # it is killed, and writes none
    conf = _KEPT | _conf(task, settings, target, archive)
    return Start(_command(target, conf, "airflow-cdc serve", "pyspark-shell"), environment)


def _forget_archive(task: EngineTask, settings: SparkSettings, target: SparkTarget) -> None:
    """Delete the class archive of an application that crashed; it may be the cause."""
    archive = _class_archive(task, task.environment(**_programs(settings, target)))
    if archive is not None:
        archive.ended(well=False)


def _command(target: SparkTarget, conf: Mapping[str, str], name: str, *application: str) -> list[str]:
    """Return the command of a driver on this machine; secrets are in its environment.

    :param application: what spark-submit starts, and its arguments.
    """
    stated = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return [_binary(target), "--master", target.master, *stated, "--name", name, *application]


def _without_noise(forward: Callable[[str], None]) -> Callable[[str], None]:
    """Drop a line of Java about its own modules, one of Spark about the folder that we set, and empty ones."""

    def forward_others(line: str) -> None:
        if line.strip() and not line.startswith(_NOISE):
            forward(line)

    return forward_others


def local_cores(master: str) -> int:
    """Return the number of tasks that run at a time on this machine, or a guess for a cluster."""
    cores = os.cpu_count() or 2
    inside = master.removeprefix("local[").rstrip("]").split(",")[0] if master.startswith("local[") else ""
    return int(inside) if inside.isdigit() else cores


def _in_one_process(target: SparkTarget) -> bool:
    """Return whether driver and executor are one JVM on this machine, so that no file has to be sent."""
    return target.master == "local" or target.master.startswith("local[")


def _check_target(target: SparkTarget) -> bool:
    """Return whether the driver runs in the cluster; reject combinations that cannot work."""
    kubernetes = "airflow.providers.cncf"  # without it the hook ends in a NameError
    if target.master.startswith("k8s://") and find_spec(kubernetes) is None:
        raise ConfigurationError([f"{target.master}: pip install apache-airflow-providers-cncf-kubernetes"])
    if target.deploy_mode != "cluster":
        return False
    if not target.master.startswith(("yarn", "k8s://")):
        raise ConfigurationError([f"deploy-mode cluster: Spark does not run Python drivers on {target.master}"])
    return True


def _programs(settings: SparkSettings, target: SparkTarget) -> dict[str, str]:
    """Return variables that name Java, Python and Spark, so that nothing depends on PATH."""
    python = settings.python or sys.executable
    variables = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "PYTHONHASHSEED": "0"}
    try:
        variables["JAVA_HOME"] = str(find_java().home)
    except JavaNotFound as problem:
        raise ConfigurationError([str(problem)]) from None
    if home := _spark_home():
        variables["SPARK_HOME"] = str(home)
    if target.master.startswith("local"):
        variables.setdefault("SPARK_LOCAL_IP", os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"))
    variables["SPARK_LAUNCHER_OPTS"] = f"{os.environ.get('SPARK_LAUNCHER_OPTS', '')} {_SHORT_LIVED}".strip()
    return variables


def _spark_home() -> Path | None:
    spec = find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / "bin" / "spark-submit").is_file():
            _demand_one_line()
            return Path(folder)
    return None


def _demand_one_line() -> None:
    """Refuse a client of another line of Spark, which Airflow's provider brings: both install the same files."""
    versions = {}
    for name in ("pyspark", "pyspark-client"):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    if len({version.rpartition(".")[0] for version in versions.values()}) > 1:
        named = " and ".join(f"{name} {version}" for name, version in versions.items())
        error = ConfigurationError([f"{named} lie over each other: they install the same files"])
        error.hint = "install one release of both; for Spark 3.5 see docs/reference/platforms.md"
        raise error


def _class_archive(task: EngineTask, environment: Mapping[str, str]) -> ClassArchive | None:
    if "SPARK_HOME" not in environment:
        return None
    java, spark = Path(environment["JAVA_HOME"]), Path(environment["SPARK_HOME"])
    conf = Path(environment.get("SPARK_CONF_DIR") or spark / "conf")
    archive = class_archive(java, spark, conf, task.session, cache_folder(), task.scratch)
    if archive is not None and archive.output is not None:
        task.say("writing a class archive for faster starts of Spark: this batch ends some seconds later")
    return archive


def _binary(target: SparkTarget) -> str:
    """Return the spark-submit that belongs to this Python, else the one the connection names on PATH."""
    home = _spark_home()
    if home is not None:
        return str(home / "bin" / "spark-submit")
    if "spark-binary" in target.extra:
        return target.extra["spark-binary"]
    raise ConfigurationError(
        ["there is no Spark here: pip install 'airflow-provider-cdc[spark]', or use engine: inline"]
    )


def _conf(
    task: EngineTask, settings: SparkSettings, target: SparkTarget, archive: ClassArchive | None = None
) -> dict[str, str]:
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.authenticate.socketTimeout": "60s",
        "spark.driver.memory": "1g",
        "spark.task.maxFailures": "4",
    }
    if target.deploy_mode != "cluster":
        classes = archive.options if archive is not None else ""
        conf["spark.driver.extraJavaOptions"] = f"{_java_options(task)} {classes}".rstrip()
    if target.master.startswith("local"):
        conf["spark.local.dir"] = str(task.scratch / "spark")
    if _in_one_process(target):
        conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        if not task.session:
            conf["spark.python.daemon.module"] = "spark_jobs.workers.daemon"
    else:
        conf |= {f"spark.executorEnv.{name}": value for name, value in PROCESS_SETTINGS.items()}
    stated = {key: conf_text(value) for key, value in settings.conf.items()}
    if task.session:
        conf["spark.driver.memory"] = "2g"
        if jars := _jars(task, stated, _binary(target)):
            stated["spark.jars"] = ",".join(filter(None, [stated.get("spark.jars"), *map(str, jars)]))
    return {**conf, **stated}


def _java_options(task: EngineTask, logging_too: str = "") -> str:
    """Return the options of the one JVM that is started here, which logs little."""
    log = task.scratch / "log4j2.properties"
    log.write_text(_LOGGING + logging_too, encoding="utf-8")
    return f"{_SHORT_LIVED} -Dlog4j2.configurationFile={log.as_uri()}"


def _jars(task: EngineTask, stated: Mapping[str, str], binary: str) -> list[Path]:
    """Return the jars of a session that the settings do not name; an empty ``spark.jars`` says that Spark has all.

    :param binary: spark-submit, in the folder ``bin`` of the Spark that it belongs to.
    """
    if stated.get("spark.jars") == "":
        return []
    named = f"{stated.get('spark.jars', '')} {stated.get('spark.jars.packages', '')}"
    names = [] if any(name in named for name in _SESSION_JARS) else ["spark"]
    names += ["s3a"] if task.session_on_s3 and "hadoop-aws" not in named else []
    line = spark_line(Path(shutil.which(binary) or binary).resolve().parents[1])
    locks = [lock_of(name, line) for name in names]
    java = find_java().executable
    with writing(jar_cache()):
        return [jar for lock in locks for jar in fetch(lock, jar_cache(), java, task.say)]
