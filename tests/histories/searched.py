# SPDX-License-Identifier: Apache-2.0
"""Search what a pipeline writes below its lake for values that are to be nowhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def holding(root: Path, secret: str) -> list[str]:
    """Return the files of a lake's ``_cdc`` that hold a text, also those that are compressed."""
    names = []
    for path in sorted(file for file in (root / "_cdc").rglob("*") if file.is_file()):
        texts = [path.read_bytes()]
        if path.suffix == ".parquet":
            texts.append(repr(pq.read_table(path).to_pylist()).encode())
        if any(secret.encode() in text for text in texts):
            names.append(str(path.relative_to(root)))
    return names
