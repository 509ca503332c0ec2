# SPDX-License-Identifier: Apache-2.0
"""Compare the files of a lake before and after."""

from __future__ import annotations

import hashlib
from pathlib import Path


def checksums(folder: Path) -> dict[str, str]:
    """Return a digest of each file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in files}
