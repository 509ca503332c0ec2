# SPDX-License-Identifier: Apache-2.0
"""Choose where the lakes of histories lie, and compare what lies in folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lake_folder() -> Iterator[Path]:
    """Give a folder in memory where the machine has one: thousands of commits then wait for no disk."""
    memory = "/dev/shm"
    folder = tempfile.mkdtemp(prefix="histories-", dir=memory if os.access(memory, os.W_OK) else None)
    try:
        yield Path(folder) / "lake"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def digests(folder: Path) -> dict[str, str]:
    """Return a digest of each file below a folder, by name."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
