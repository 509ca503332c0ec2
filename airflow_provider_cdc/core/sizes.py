# SPDX-License-Identifier: Apache-2.0
"""Write sizes for people."""

from __future__ import annotations


def files_text(count: int, size: int) -> str:
    """Return a number of files and their bytes for people."""
    return f"{count} file{'s' if count != 1 else ''} with {size_text(size)}"


def size_text(size: int) -> str:
    """Return a number of bytes for people."""
    if size < 1024:
        return f"{size} byte{'s' if size != 1 else ''}"
    units = ("KiB", "MiB", "GiB", "TiB")
    power = min((size.bit_length() - 1) // 10, len(units))
    return f"{size / 1024**power:.1f} {units[power - 1]}"
