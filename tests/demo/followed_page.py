# SPDX-License-Identifier: Apache-2.0
"""Follow a page as its reader does: write its files, run its commands in one shell, and compare what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PART = re.compile(r"^(?:`([\w.-]+)`[^\n]*:\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "==== block"
# What a page installs is there already: these say so, and refuse what nobody declares.
_PROGRAMS = {
    "python3": 'test "$1 $2" = "-m venv" && mkdir -p "$3/bin" && touch "$3/bin/activate"\n',
    "pip": f'exec "{sys.executable}" -m tests.demo.installed_packages "$@"\n',
}


@dataclass(frozen=True)
class Part:
    """A block of a page.

    :param file: that the page names in front of it, empty without.
    """

    file: str
    language: str
    text: str


def parts_of(page: str) -> list[Part]:
    """Return the blocks of a page: files, commands (``bash``), and what the commands before them print (``text``)."""
    parts = [Part(*match) for match in _PART.findall(page)]
    unknown = [part for part in parts if part.language not in ("bash", "text") and not part.file]
    assert not unknown, f"neither commands, nor output, nor a file with a name: {unknown}"
    return parts


def follow(parts: Sequence[Part], folder: Path, environment: Mapping[str, str], timeout: float) -> list[str]:
    """Do what the blocks say in an empty folder; return what each block of commands prints.

    :raises AssertionError: a command failed.
    """
    programs = folder / ".programs"
    programs.mkdir()
    for name, text in _PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\nset -e\n{text}")
        (programs / name).chmod(0o755)
    for part in parts:
        if part.file:
            (folder / part.file).write_text(part.text)
    commands = [part.text for part in parts if part.language == "bash"]
    script = "set -euo pipefail\n" + "".join(f"echo '{_MARK}'\n{text}" for text in commands)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=folder, env={**os.environ, **environment, "PATH": path}, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
    return run.stdout.split(f"{_MARK}\n")[1:]


def differences(parts: Sequence[Part], printed: Sequence[str]) -> list[str]:
    """Return the outputs that a page states otherwise; ``…`` in it stands for any text."""
    number, different = -1, []
    for part in parts:
        if part.language == "bash":
            number += 1
        elif part.language == "text" and not _pattern(part.text).fullmatch(printed[number]):
            different.append(f"the page says:\n{part.text}\nprinted was:\n{printed[number]}")
    return different


def _pattern(text: str) -> re.Pattern[str]:
    lines = [re.escape(line.rstrip()).replace("…", ".*?") + r" *\n" for line in text.splitlines()]
    return re.compile("".join(lines).replace(r".*? *\n", r".*?\n"), re.DOTALL)
