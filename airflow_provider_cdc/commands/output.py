# SPDX-License-Identifier: Apache-2.0
"""Print for commands: tables and sentences for people, JSON for machines, errors with an exit code."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from typing import TextIO

from airflow_provider_cdc.core.errors import (
    CdcError,
    ConfigurationError,
    Transient,
    concerns_configuration,
    error_members,
)
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.printable import printable, printable_lines
from airflow_provider_cdc.observability.remedies import copyable

DONE, CONFIGURATION, DATA, AGAIN = 0, 2, 3, 5
"""Exit codes: done or nothing to do; correct the configuration; look at the data; try again later."""


def exit_code(error: CdcError) -> int:
    """Return the exit code of a command that ended with this error, by its code: errors may come from a document."""
    if isinstance(error, Transient):
        return AGAIN
    return CONFIGURATION if concerns_configuration(error) else DATA


def guarded(work: Callable[[], int], args: Namespace) -> int:
    """Run a command; turn its errors into a sentence, a document if asked for, and an exit code.

    :param args: of the command: ``json``, whether the answer goes to a machine, and the file of its ``pipeline``.
    """
    as_json, file = getattr(args, "json", False), getattr(args, "pipeline", None)
    try:
        with _only_documents_on_stdout() if as_json else nullcontext():
            return work()
    except CdcError as error:
        name_file(error, file)
        if as_json:
            print_json({"status": ResultStatus.FAILED, **error_members(error)})
        complain(error)
        return exit_code(error)
    except KeyboardInterrupt:
        complain("interrupted; run the same command again")
        return AGAIN
    except BrokenPipeError:
        # The reader closed the pipe; the interpreter must not try to flush again.
        sys.stdout = None
        return DONE


def name_file(error: CdcError, file: str | None) -> None:
    """Let the commands in an error's hint name the pipeline's file and the error's table, so that they can be copied.

    :param file: None where the command has none.
    """
    error.hint = copyable(error.hint, file or "", str(error.where.get("table") or ""))


_documents: ContextVar[TextIO | None] = ContextVar("_documents", default=None)


@contextmanager
def _only_documents_on_stdout() -> Iterator[None]:
    """Send what libraries print to stderr: Airflow's warnings go to stdout by default."""
    token = _documents.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _documents.reset(token)


def complain(problem: CdcError | str) -> None:
    """Print one problem where people see it and pipes do not."""
    text = str(problem)
    if isinstance(problem, ConfigurationError) and len(problem.problems) > 1:
        text = "\n".join([f"[{problem.code}] {problem.location}", *(f"- {line}" for line in problem.problems)])
    print(f"airflow-cdc: {printable_lines(text)}", file=sys.stderr, flush=True)


def print_json(data: object) -> None:
    """Print one JSON document on one line."""
    print(json_line(data), file=_documents.get(), flush=True)


def json_line(data: object) -> str:
    """Return one JSON document in one line, safe for a terminal."""
    return printable(json.dumps(data, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table for people, numbers aligned right."""
    texts = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    widths = [max([len(name), *(len(row[index]) for row in texts)]) for index, name in enumerate(head)]
    known = [[row[index] for row in rows if row[index] is not None] for index in range(len(head))]
    right = [bool(cells) and all(isinstance(cell, (int, float)) for cell in cells) for cells in known]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    print(line(list(head)))
    print(line(["-" * width for width in widths]))
    for row in texts:
        print(line(row))
