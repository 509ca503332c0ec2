# SPDX-License-Identifier: Apache-2.0
"""List the files of the repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT

TEXT = {"", ".cfg", ".ini", ".json", ".lock", ".md", ".proto", ".py", ".pyi", ".sh", ".sql", ".toml", ".txt", ".xml"}
RECORDED = ("tests/captures/data/", "tests/fixtures/")


def tracked() -> list[Path]:
    """Text files git knows, recorded data left out."""
    run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in run.stdout.split("\0") if name and not name.startswith(RECORDED)]
    return [file for file in files if file.suffix in TEXT and file.is_file()]
