# SPDX-License-Identifier: Apache-2.0
"""Open what a lake lies on: a local disk or an object store. Errors are :class:`OSError`."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from airflow_provider_cdc.core.lake.cloud_objects import CloudObjects
from airflow_provider_cdc.core.lake.hdfs_objects import HdfsObjects
from airflow_provider_cdc.core.lake.local_objects import LocalObjects
from airflow_provider_cdc.core.lake.store_kinds import AZURE, GOOGLE, HDFS, S3, StoreKind, store_kind


class Objects(Protocol):
    """Objects below a root; a name is relative to it, and a folder is the beginning of names."""

    def create(self, name: str, content: bytes, *, durable: bool = True) -> bool:
        """Write an object unless one is there; of several writers exactly one succeeds.

        :param durable: whether to wait until a local disk has it; stores always do.
        :return: whether this call wrote it.
        """
        ...

    def put(self, name: str, content: bytes, *, durable: bool = True) -> None:
        """Write an object, or replace it; readers see all of it or nothing.

        :param durable: whether that holds after a power loss too; if not, it may be empty or missing then.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """Return an object's content, None where it does not exist."""
        ...

    def open(self, name: str) -> io.RawIOBase:
        """Open an object for reading at any offset.

        :raises FileNotFoundError: the object does not exist.
        """
        ...

    def open_new(self, name: str) -> io.RawIOBase:
        """Open an object for writing; in a store it appears whole when it is closed."""
        ...

    def holds_any(self, folder: str) -> bool:
        """Return whether any object lies under a folder."""
        ...

    def folders(self, folder: str, after: str = "") -> list[str]:
        """Return the names of the folders directly in a folder that sort behind a name, sorted."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects under a folder, without the folder's, sorted.

        :param folder: empty for the root.
        """
        ...

    def entries(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:
        """Return the names of folders directly in a folder, and those of its objects with their sizes, sorted.

        :param folder: empty for the root.
        """
        ...

    def modified(self, name: str) -> float:
        """Return when an object was written last, in seconds since 1970."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object."""
        ...

    def delete_all(self, folder: str, *, traces: bool = False) -> None:
        """Remove all objects under a folder, none where it is not there.

        :param traces: whether to remove folders above it that are empty then, too; most stores have no folders.
        """
        ...


_CLIENTS: Mapping[StoreKind | None, Callable[[str, Mapping[str, str]], Objects]] = {
    None: lambda root, options: LocalObjects(root),
    S3: partial(CloudObjects, S3),
    GOOGLE: partial(CloudObjects, GOOGLE),
    AZURE: partial(CloudObjects, AZURE),
    HDFS: lambda root, options: HdfsObjects(root),
}


def open_objects(root: str, options: Mapping[str, str]) -> Objects:
    """Open what a root lies on.

    :param root: canonical: an absolute path, or an address with one of :data:`STORE_SCHEMES`.
    :param options: storage options in delta-rs' names.
    """
    return _CLIENTS[store_kind(root)](root, options)
