# SPDX-License-Identifier: Apache-2.0
"""Describe unforeseen exceptions without their text, which may quote values."""

from __future__ import annotations

import traceback


def is_panic(error: BaseException) -> bool:
    """Return whether an error is the panic of a library in Rust, which is not an ``Exception``."""
    return type(error).__name__ == "PanicException"


def may_be_caught(error: BaseException) -> bool:
    """Return whether an error concerns only the work that raised it, unlike the end of the process."""
    return isinstance(error, Exception) or is_panic(error)


def summary(error: BaseException) -> str:
    """Return the class of an error and the line of Python that raised it."""
    frames = [(frame.filename.rsplit("/", 1)[-1], frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [f"{name}:{line}" for name, line in frames if not name.endswith((".pxi", ".pyx"))]
    return f"{type(error).__name__} in {ours[-1] if ours else '?'}"


def course(error: BaseException) -> str:
    """Return the lines of Python through which an error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames)
