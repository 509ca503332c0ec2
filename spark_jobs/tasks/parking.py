# SPDX-License-Identifier: Apache-2.0
"""Decide what an error means for its table: the batch runs again, or the table is parked with a reason."""

from __future__ import annotations

import errno
from typing import Any

from airflow_provider_cdc.core.errors import (
    REBUILD,
    CdcError,
    DataError,
    SinkError,
    UnavailableError,
    first_line,
    out_of_memory,
)
from airflow_provider_cdc.core.faults import summary

# what a file system answers for good, whatever it is asked again
_LASTING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL})


def as_cdc_error(error: BaseException, where: dict[str, Any]) -> CdcError:
    """Return an error as one of this project: if it is ``Transient`` the batch should run again, else the table parks.

    :param where: the table and its location; what the error says itself of its place stays.
    """
    if isinstance(error, CdcError):
        error.where = {**where, **error.where}
        return error
    if isinstance(error, MemoryError):
        return out_of_memory("apply.memory", "the table's changes", where)
    if isinstance(error, OSError):
        return _of_files(error, where)
    # a fault of ours: its text may quote values
    return DataError("apply.fault", summary(error), where=where, hint="please report this with the table's DDL")


def _of_files(error: OSError, where: dict[str, Any]) -> CdcError:
    reason = first_line(error)
    if error.errno in _LASTING or isinstance(error, FileNotFoundError):
        return SinkError(
            "sink.file_missing",
            f"a file that the table needs cannot be had: {reason}",
            where=where,
            hint=f"restore the file, or {REBUILD}",
        )
    return UnavailableError(
        "sink.unavailable",
        f"the store failed: {reason}",
        where=where,
        hint="check the store's free space, rights and network, then run again; nothing is half written",
    )
