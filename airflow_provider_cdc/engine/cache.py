# SPDX-License-Identifier: Apache-2.0
"""Keep what this project downloads or generates in a folder; programs start from it, so it is private."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def cache_folder() -> Path:
    """Return the cache's folder: AIRFLOW_CDC_CACHE, by default ~/.cache/airflow-cdc."""
    named = os.environ.get("AIRFLOW_CDC_CACHE")
    return Path(named).expanduser().absolute() if named else Path.home() / ".cache" / "airflow-cdc"


def private_folder(folder: Path) -> Path:
    """Return a folder that only this user can write to; create it if it is missing.

    :raises ConfigurationError: it belongs to another user, others may write to it, or it cannot be created.
    :raises UnavailableError: code ``cache.full``.
    """
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        reason = "belongs to another user" if status.st_uid != os.geteuid() else "may be written to by others"
        reason = reason if stat.S_ISDIR(status.st_mode) else "is not a folder"
        raise _refused(folder, f"{reason}, and programs are started from there")
    return folder


def is_private(file: Path) -> bool:
    """Return whether a file exists and nobody else can have written it."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn errors of writing to the cache into errors that say what to do.

    :raises ConfigurationError: the cache cannot be written.
    :raises UnavailableError: its disk is full: code ``cache.full``.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise UnavailableError(
                "cache.full", f"the cache cannot be written: {error.strerror}", where={"folder": str(folder)},
                hint="free some space, or set AIRFLOW_CDC_CACHE to a folder on another disk; then run again",
            ) from None  # fmt: skip
        raise _refused(folder, f"cannot be written: {error.strerror}") from None


def _refused(folder: Path, reason: str) -> ConfigurationError:
    refused = ConfigurationError([f"the cache folder {folder} {reason}"], where={"folder": str(folder)})
    refused.hint = "set AIRFLOW_CDC_CACHE to a folder of this user (mode 0700), or delete the folder named"
    return refused
