# SPDX-License-Identifier: Apache-2.0
"""Run ``serve``: batches of pipelines again and again, from one process that has imported everything."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_provider_cdc.commands.output import DONE, complain, name_file, print_json
from airflow_provider_cdc.core.errors import ConfigurationError, error_in
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.printable import printable


def serve(args: Namespace) -> int:
    """Run batches until a signal ends it."""
    from airflow_provider_cdc.serving.server import Server

    if not files(args.pipelines):
        raise ConfigurationError([f"no pipeline: {', '.join(args.pipelines)} has no file named *.yaml"])
    server = Server(lambda: files(args.pipelines), args.every, args.jobs, Lines(as_json=args.json))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    server.serve()
    return DONE


def files(paths: Iterable[str]) -> list[str]:
    """Return the files that are named, and the YAML files of the folders that are, each once."""
    listed = [
        sorted([*path.glob("*.yaml"), *path.glob("*.yml")]) if path.is_dir() else [path] for path in map(Path, paths)
    ]
    return list(dict.fromkeys(str(file) for some in listed for file in some))


class Lines:
    """Print a line for each batch: of all in JSON, for people of those that did something, and of new failures."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._failures: dict[str, str] = {}

    def __call__(self, file: str, document: dict[str, Any]) -> None:
        """Take what came of a batch.

        :param file: the pipeline's.
        """
        if self._as_json:
            print_json({"file": file, **document})
            return
        error = error_in(document)
        known, self._failures[file] = self._failures.get(file, ""), "" if error is None else error.code
        if error is not None and error.code != known:
            name_file(error, file)
            complain(error)
        elif error is None and (document["status"] != ResultStatus.NOTHING_TO_DO or known):
            print(printable(f"{datetime.now(UTC):%H:%M:%S} {_sentence(document)}"), flush=True)


def _sentence(document: dict[str, Any]) -> str:
    """Return what a batch did."""
    name, status = document["pipeline"], document["status"]
    seconds = f"{document['seconds']:.1f} s"
    if status == ResultStatus.NOTHING_TO_DO:
        return f"{name}: nothing new ({seconds})"
    parked = document.get("parked") or ()
    tables = sum(1 for table in document.get("tables") or () if table["action"])
    more = f", {len(parked)} parked" if parked else ""
    return f"{name}: batch {document['seq']} {status}, {document['records']} records, {tables} tables{more} ({seconds})"
