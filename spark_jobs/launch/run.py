# SPDX-License-Identifier: Apache-2.0
"""The one file given to spark-submit: reads the job document, hands out tasks (or runs them here), writes the result.

Alone in its folder: Spark puts the folder of the main file on the module path.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf

Say = Callable[[str], None]

_REDACTION = "spark.redaction.regex"  # names of properties that Spark hides; its default covers ours


def main(arguments: Sequence[str]) -> int:
    """Run one batch; the result document says what came of it, the exit code only whether there is one."""
    parser = argparse.ArgumentParser(description="Carry out one CDC batch.")
    parser.add_argument("job", help="job document (JSON file), or folder or URL of a staged job")
    parser.add_argument("result", nargs="?", help="where the result document goes; a staged job has it in its folder")
    parser.add_argument("--inline", action="store_true", help="run the tasks in this process, without Spark")
    parser.add_argument("--attach", action="store_true", help="use the JVM that is there, and leave it running")
    parser.add_argument("--store", action="append", default=[], metavar="NAME=VALUE", help="option of the lake's store")
    parser.add_argument("--payload", default="", help="zip with the code, for executors that lack it")
    options = parser.parse_args(arguments)
    from airflow_provider_cdc.core.documents import JobDocument, take_secrets

    if options.result is None:
        from spark_jobs.driver.staged_run import run_staged

        store = dict(option.split("=", 1) for option in options.store)
        return run_staged(options.job, store, partial(_run, payload=options.payload), _say)
    with open(options.job, encoding="utf-8") as file:
        job = JobDocument.from_document(json.load(file))
    result = _run(job, take_secrets(), _say, inline=options.inline, attached=options.attach)
    try:
        _write(options.result, result.document())
    except OSError as error:
        _say(f"cannot write the result to {options.result}: {error.strerror or type(error).__name__}")
        return 1
    return 0


def _run(
    job: Any,
    secrets: dict[str, dict[str, str]],
    say: Say,
    *,
    inline: bool = False,
    attached: bool = False,
    payload: str = "",
) -> Any:
    """Run a job and return its result.

    :param say: takes one line of progress.
    :param inline: in this process, without Spark.
    :param attached: in an application that goes on afterwards.
    :param payload: zip with the code, for executors that lack it.
    """
    begun = _cpu_seconds()  # a process that serves batches has had others before
    from airflow_provider_cdc.core.errors import CdcError
    from spark_jobs.workers.garbage_collection import collect_seldom
    from spark_jobs.workers.present_spark import is_connected, running_context
    from spark_jobs.workers.task_transport import shut_out_pandas

    collect_seldom()
    spark_secrets = secrets.pop("spark", {})
    by_connection = not inline and is_connected()  # its sessions need pandas
    if not (job.session or by_connection or running_context()):
        shut_out_pandas()
    from spark_jobs.driver.run_batch import failed  # has arrays made: only now
    from spark_jobs.sinks.registry import open_sink
    from spark_jobs.workers.encryption import demand_encryption
    from spark_jobs.workers.progress import step_reports

    run, stop, session, conf = (
        _inline() if inline else _spark(job, secrets, spark_secrets, say, payload, attached=attached)
    )
    job.parallelism = job.parallelism or int(conf["spark.default.parallelism"])
    try:
        demand_encryption(conf, secrets)
        if session is not None and (spark_side := open_sink(job, secrets).spark) is not None:
            spark_side.demand_libraries(job, session.sparkContext)
        # a cluster keeps the lines of a driver that runs in it
        with step_reports(say, 30.0 if conf.get("spark.submit.deployMode") == "cluster" else 1.0):
            result = _carried_out(job, secrets, run, session, say)
    except CdcError as error:
        result = failed(job, error)
    finally:
        stop()
    result.cpu_seconds = round(_cpu_seconds() - begun, 3)
    return result


def _carried_out(
    job: Any, secrets: dict[str, dict[str, str]], run: Callable[..., list[Any]], session: Any, say: Say
) -> Any:
    """Return the result of what a job asks for."""
    from airflow_provider_cdc.core.documents import Adoption, Look, Maintenance, Probe
    from spark_jobs.driver.maintenance import maintain
    from spark_jobs.driver.probe import probe
    from spark_jobs.driver.quarantine_entries import look
    from spark_jobs.driver.run_batch import sync
    from spark_jobs.lake.identity import adopt

    match job.order:
        case Look():
            return look(job, secrets)
        case Maintenance() as maintenance:
            return maintain(job, maintenance, secrets, run)
        case Adoption():
            return adopt(job, secrets)
        case Probe():
            return probe(job, secrets, run)
    return sync(job, secrets, run, say, session)


# run tasks, stop, session or None, Spark's configuration
_Engine = tuple[Callable[..., list[Any]], Callable[[], None], Any, dict[str, str]]


def _inline() -> _Engine:
    conf = {"spark.master": "local", "spark.default.parallelism": "1"}
    return (lambda function, items: [function(item) for item in items]), (lambda: None), None, conf


def _spark(
    job: Any, secrets: dict[str, dict[str, str]], properties: dict[str, str], say: Say, payload: str, *, attached: bool
) -> _Engine:
    """Start Spark's bare context: rows never cross to the JVM; only the Spark reader and writer need a session.

    :param properties: those that no argument may hold.
    :param attached: to the JVM that is there, whose context stays.
    """
    from spark_jobs.workers.connect import connected
    from spark_jobs.workers.encryption import RELEVANT
    from spark_jobs.workers.present_spark import is_connected, running_context
    from spark_jobs.workers.progress import follow

    if is_connected():
        hand_out, end_session, known = connected(job, payload, say)
        return hand_out, end_session, None, known
    hosts = running_context()
    context, stop, hadoop = (hosts, lambda: None, {}) if hosts else _context(job, secrets, properties, attached)
    # Only now: what Spark starts with is in its event log, and on YARN a file on the disk of each node.
    for key, value in hadoop.items():
        context._jsc.hadoopConfiguration().set(key, value)
    if payload:
        context.addPyFile(payload)
    say(f"Spark application {context.applicationId}")

    counts = context.accumulator(0), context.accumulator(0)
    follow(lambda: (counts[0].value, counts[1].value))

    def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if not items:
            return []
        from spark_jobs.workers.task_transport import carried, raised, sent

        documents = context.parallelize([sent(item) for item in items], len(items))
        answers = documents.map(carried(function, counts, pandas=job.session)).collect()
        return [raised(answer) for answer in answers]

    session = None
    if job.session:
        from pyspark.sql import SparkSession

        session = SparkSession(context) if hosts is None else SparkSession.builder.getOrCreate()
    settings = {key: context._conf.get(key, "") for key in ("spark.submit.deployMode", *RELEVANT)}  # one call each
    return run, stop, session, {**settings, "spark.default.parallelism": str(context.defaultParallelism)}


def _context(
    job: Any, secrets: dict[str, dict[str, str]], properties: dict[str, str], attached: bool
) -> tuple[Any, Callable[[], None], dict[str, str]]:
    """Return a context, what ends it for this batch, and Hadoop's settings, which it gets once it has started."""
    if attached:
        from spark_jobs.workers.kept_context import attach, detach

        context = attach()
        return context, partial(detach, context), {}
    from spark_jobs.workers.module_path import prefer_installed

    prefer_installed()
    from pyspark import SparkContext

    conf, hadoop = _settings(job, secrets, properties)
    context = SparkContext.getOrCreate(conf)
    context.setLogLevel("WARN")
    return context, context.stop, hadoop


def _settings(
    job: Any, secrets: dict[str, dict[str, str]], properties: dict[str, str]
) -> tuple[SparkConf, dict[str, str]]:
    """Return what Spark is to start with, and Hadoop's settings, which it gets once it has started."""
    from pyspark import SparkConf, SparkContext

    if properties:
        SparkContext._ensure_initialized()  # else the configuration does not show the arguments of spark-submit
    conf = SparkConf().setIfMissing("spark.app.name", f"airflow-cdc {job.pipeline} {job.seq}")
    conf.setAll(list(properties.items()))
    if properties and conf.contains(_REDACTION):
        conf.set(_REDACTION, "|".join([*map(re.escape, properties), conf.get(_REDACTION)]))
    hadoop: dict[str, str] = {}
    if job.session:
        from spark_jobs.sinks.registry import open_sink

        spark_side = open_sink(job, secrets).spark
        for key, value in spark_side.settings(job).items() if spark_side is not None else ():
            if not key.startswith("spark.hadoop."):
                conf.setIfMissing(key, value)
            elif not conf.contains(key):
                hadoop[key.removeprefix("spark.hadoop.")] = value
        conf.setIfMissing("spark.sql.shuffle.partitions", str(max(4, 2 * job.parallelism)))
    return conf, hadoop


def _cpu_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for, in seconds."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _say(line: str) -> None:
    from airflow_provider_cdc.core.printable import printable

    sys.stdout.write(f"{printable(line)}\n")  # in one piece: threads say lines
    sys.stdout.flush()


def _write(path: str, document: dict[str, Any]) -> None:
    from airflow_provider_cdc.core.json_documents import json_bytes

    part = f"{path}.part"
    with open(part, "wb") as file:
        file.write(json_bytes(document))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def end(code: int) -> None:
    """End the process, unless it is a platform's own."""
    from spark_jobs.workers.present_spark import running_context

    sys.stdout.flush()
    sys.stderr.flush()
    if running_context() is None:
        # threads of a sink's library may abort the process while the interpreter shuts down; all is written and closed
        os._exit(code)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    end(main(sys.argv[1:]))
