# SPDX-License-Identifier: Apache-2.0
"""Run ``doctor``: check that everything a pipeline needs is there, and say what to do where it is not."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from airflow_provider_cdc.batch.findings import Finding, checked
from airflow_provider_cdc.batch.source_log import source_kind
from airflow_provider_cdc.commands.output import CONFIGURATION, DONE, print_json
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables

_LEAST_FREE = 1 << 20  # bytes: nothing can be written with less
_REQUIRED = re.compile(r"[A-Za-z0-9._-]+")


def doctor(args: Namespace) -> int:
    """Check everything and print one line each; exit 2 when something must be corrected."""
    pipeline = CdcPipeline.from_yaml(args.pipeline) if args.pipeline else None
    results = list(findings(pipeline, probe=args.probe))
    if args.json:
        print_json([result.document() for result in results])
    else:
        for finding in results:
            sign = {True: "ok  ", False: "FAIL", None: "-   "}[finding.ok]
            print(f"{sign} {finding.check}: {printable(finding.message)}")
            if finding.hint and not finding.ok:
                print(f"       -> {printable(finding.hint)}")
    return CONFIGURATION if any(result.ok is False for result in results) else DONE


def findings(pipeline: CdcPipeline | None, *, probe: bool = False) -> Iterator[Finding]:
    """Check everything; without a pipeline only this machine.

    :param probe: also make a small table in the sink, merge into it and remove it.
    """
    away = pipeline is not None and pipeline.spark.elsewhere and pipeline.policy.engine != "inline"
    needs_spark = not away and (pipeline is None or pipeline.policy.engine != "inline")
    yield _packages()
    yield _pyspark(needs_spark)
    yield _java(needs_spark)
    if pipeline is None:
        yield Finding(
            "pipeline", None, "none given", "airflow-cdc doctor PIPELINE.yaml checks its broker, ledger and sink"
        )
        return
    yield checked("format", lambda: _format(pipeline))
    yield from source_kind(pipeline).findings(pipeline)
    yield checked("ledger", lambda: _ledger(pipeline))
    yield checked("sink", lambda: _sink(pipeline))
    if probe:
        yield from _probe(pipeline)
    yield checked("lake", lambda: _lake(pipeline))
    if needs_spark:
        yield checked("spark connection", lambda: _spark(pipeline))
    if away:
        yield checked("platform", lambda: _platform(pipeline))


# ---- this machine


def _packages() -> Finding:
    """Check that the required packages are installed; pip checks whether their versions fit each other."""
    try:
        needed = [_REQUIRED.match(text) for text in requires("airflow-provider-cdc") or () if "extra ==" not in text]
        names = [match[0] for match in needed if match]
    except PackageNotFoundError:
        libraries = [kind.library for kind in SINKS.values()]
        names = ["apache-airflow", "confluent-kafka", "msgspec", "pyarrow", "pyyaml", "sqlalchemy", *libraries]
    missing = []
    for name in names:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    python = ".".join(map(str, sys.version_info[:3]))
    if missing:
        message = f"missing: {', '.join(missing)}"
        return Finding("python packages", False, message, "pip install --upgrade airflow-provider-cdc")
    return Finding("python packages", True, f"Python {python}, {len(names)} packages found")


def _pyspark(needed: bool) -> Finding:
    """Check that pyspark and pyspark-client, which install the same files, are of one release."""
    versions = {}
    for name in ("pyspark", "pyspark-client"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ""
    full, client = versions["pyspark"], versions["pyspark-client"]
    hint = "pip install --force-reinstall --no-deps pyspark==4.1.3 pyspark-client==4.1.3"
    if not full:
        hint = "pip install 'airflow-provider-cdc[spark]', or use policy.engine: inline"
        return Finding("pyspark", False if needed else None, "not installed", hint)
    if client and client != full:
        message = f"pyspark {full} and pyspark-client {client} overwrite each other's files"
        return Finding("pyspark", False, message, hint)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.origin or not (Path(spec.origin).parent / "bin" / "spark-submit").is_file():
        return Finding("pyspark", False, f"pyspark {full} has no spark-submit", hint)
    return Finding("pyspark", True, f"pyspark {full}" + (", pyspark-client the same" if client else ""))


def _java(needed: bool) -> Finding:
    from airflow_provider_cdc.engine.java import JavaNotFound, find_java

    try:
        java = find_java()
    except JavaNotFound as problem:
        text, _, hint = str(problem).partition(". ")
        return Finding("java", False if needed else None, text, hint)
    return Finding("java", True, f"Java {java.version} from {java.origin}: {java.home}")


# ---- what the pipeline names


def _format(pipeline: CdcPipeline) -> str:
    from airflow_provider_cdc.core.errors import ConfigurationError
    from airflow_provider_cdc.core.formats.contract import Registered
    from airflow_provider_cdc.core.formats.registry import open_format

    fmt = open_format(pipeline.source.format, pipeline.source.options)
    if isinstance(fmt, Registered) and pipeline.source.schema_registry is None:
        raise ConfigurationError([f"source.schema_registry: is missing: {fmt.name} reads schemas of a registry"])
    return f"{fmt.name}, order {fmt.order}"


def _ledger(pipeline: CdcPipeline) -> str:
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger

    ledger = Ledger(ledger_url(pipeline.ledger))
    last, holder = ledger.last(pipeline.name), ledger.holder(pipeline.name)
    state = f"{ledger!r}, last batch {last.seq} {last.status}" if last else f"{ledger!r}, no batch yet"
    return f"{state}, held by {holder['owner']} until {holder['until']}" if holder else state


def _sink(pipeline: CdcPipeline) -> str:
    from airflow_provider_cdc.connections.lookup import sink_options
    from airflow_provider_cdc.core.errors import SinkError

    stored, root = PipelineTables(pipeline, sink_options), pipeline.sink.root
    options = stored.options  # also where the root is a folder: the connection is to be there
    if not root.startswith("/"):
        try:
            there = stored.reader.is_table(f"{root}/_cdc_doctor", options)
        except Exception as error:
            text = str(error).splitlines()[0]
            raise SinkError("sink.unreachable", text, hint="check sink.root and sink.storage_connection") from None
        return f"{root} answers" + (" (a table is in the way)" if there else "")
    return _folder(root, "sink.root")


def _probe(pipeline: CdcPipeline) -> Iterator[Finding]:
    """Yield one finding if all went well, else one for each step that failed."""
    from airflow_provider_cdc.batch.probe import probe

    try:
        steps = {step.name: step.error for step in probe(pipeline)}
    except CdcError as error:
        yield Finding("probe", False, error.headline, error.hint or "correct the pipeline or its connection")
        return
    failed = {name: CdcError.from_document(error) for name, error in steps.items() if error is not None}
    for name, problem in failed.items():
        yield Finding(f"probe: {name}", False, problem.headline, problem.hint)
    if not failed:
        yield Finding("probe", True, "a table was made, merged into and removed")


def _lake(pipeline: CdcPipeline) -> str:
    from airflow_provider_cdc.connections.lookup import storage_options
    from airflow_provider_cdc.core.lake.object_store import open_objects

    lake = pipeline.lake
    if lake == pipeline.sink.own_lake():
        return "with the tables"
    options = {**storage_options(lake.storage_connection), **lake.storage_options}
    if lake.root.startswith("/"):
        return _folder(lake.root, "lake.root")
    there = open_objects(lake.root, options).holds_any("_cdc")
    return f"{lake.root} answers" + ("" if there else "; it is empty")


def _folder(root: str, key: str) -> str:
    """Look whether a local folder can be written."""
    from airflow_provider_cdc.core.errors import SinkError

    folder = Path(root)
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SinkError("sink.not_writable", f"{folder} cannot be written", hint=f"check {key} and the rights on it")
    if shutil.disk_usage(folder).free < _LEAST_FREE:
        raise SinkError("log.unavailable", f"the disk of {folder} is full", hint="free some space")
    return f"{root} can be written" + ("" if folder == Path(root) else f" (will be created below {folder})")


def _platform(pipeline: CdcPipeline) -> str:
    """Ask a platform for a run that it does not have."""
    from airflow_provider_cdc.platforms.contract import open_platform

    open_platform(pipeline.spark).state("0")
    return f"{pipeline.spark.submit} answers"


def _spark(pipeline: CdcPipeline) -> str:
    from airflow_provider_cdc.connections.lookup import spark_target

    target = spark_target(pipeline.spark.connection)
    python = pipeline.spark.python or sys.executable
    imports = f"import pyarrow, {SINKS[pipeline.sink.type].library}, confluent_kafka"
    run = subprocess.run([python, "-c", imports], capture_output=True, text=True)
    if run.returncode:
        from airflow_provider_cdc.core.errors import ConfigurationError

        last = (run.stderr.strip().splitlines() or ["it does not start"])[-1]
        raise ConfigurationError([f"spark.python {python}: {last}"])
    return f"{target.master}, Python {python}"
