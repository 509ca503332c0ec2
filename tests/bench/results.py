# SPDX-License-Identifier: Apache-2.0
"""The file with the bench's figures: a run replaces what it measured again, and leaves the rest.

`cells` has a contestant in a case, `growth` a pipeline after a number of batches; each with its commit, date and
machine. Ratios hold between figures of one machine and, best, of one run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.report import Cell, Figures, marginals, targets

ROOT = Path(__file__).parents[2]
FILE = ROOT / "build" / "bench" / "bench.json"
Document = dict[str, Any]


def load(file: Path) -> Document:
    """Return the figures of a file; none where there is no file."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def add(
    file: Path,
    cells: Iterable[Cell] = (),
    growth: Iterable[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> None:
    """Put figures into a file, in place of those of the same case and contestant or number of batches.

    options: those of this run.
    """
    old = load(file)
    every = {(cell["case"], cell["who"]): cell for cell in (*old.get("cells", ()), *cells)}
    samples = {sample["batches"]: sample for sample in (*old.get("growth", ()), *growth)}
    document = {
        "options": options or old.get("options", {}),
        "cells": list(every.values()),
        "growth": [samples[batches] for batches in sorted(samples)],
        "marginal": marginals(every.values()),
        "targets": [target.document() for target in targets(Figures(every.values()))],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def without_runs(document: Document) -> Document:
    """Return figures without what the processes wrote and each round had."""
    cells = [{name: value for name, value in cell.items() if name != "runs"} for cell in document.get("cells", ())]
    return {**document, "cells": cells}


def stamp() -> dict[str, str]:
    """Return commit, date and machine of what is measured now."""
    return {"commit": _commit(), "date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": _machine()}


def _commit() -> str:
    """Return the commit, with `-dirty` where files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    model = model or platform.machine()
    return f"{os.cpu_count()} x {model}, {memory:.0f} GB, {platform.system()}, Python {platform.python_version()}"
