"""Exceptions that nobody foresaw: what they are, said without their text, which may quote values."""

from __future__ import annotations

import traceback


def is_panic(error: BaseException) -> bool:
    """Say whether a library written in Rust stopped at a fault of its own; such an error is no ``Exception``."""
    return type(error).__name__ == "PanicException"


def may_be_caught(error: BaseException) -> bool:
    """Say whether an error concerns only the work that raised it, unlike the end of the process."""
    return isinstance(error, Exception) or is_panic(error)


def summary(error: BaseException) -> str:
    """Return the kind of an error and the place in Python that raised it."""
    frames = [(frame.filename.rsplit("/", 1)[-1], frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    ours = [f"{name}:{line}" for name, line in frames if not name.endswith((".pxi", ".pyx"))]
    return f"{type(error).__name__} in {ours[-1] if ours else '?'}"


def course(error: BaseException) -> str:
    """Return the places in Python through which an error came."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames)
