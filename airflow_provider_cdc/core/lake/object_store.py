# SPDX-License-Identifier: Apache-2.0
"""Open a store of files that appear whole: conditional writes, listings from a name on. Errors are :class:`OSError`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Protocol

from airflow_provider_cdc.core.lake.cloud_objects import CloudObjects
from airflow_provider_cdc.core.lake.hdfs_objects import HdfsObjects
from airflow_provider_cdc.core.lake.store_kinds import HDFS, STORE_SCHEMES


class Objects(Protocol):
    """Objects below a root; a name is relative to it, and a folder is the beginning of names."""

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless one is there; return whether this call wrote it."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write an object, or replace it; readers see all of it or nothing."""
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
        """Open an object for writing; it appears whole when it is closed."""
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

    def delete(self, name: str) -> None:
        """Remove an object."""
        ...

    def delete_all(self, folder: str) -> None:
        """Remove all objects under a folder."""
        ...


def open_objects(root: str, options: Mapping[str, str]) -> Objects:
    """Open the store of a root.

    :param root: canonical, of one of :data:`STORE_SCHEMES`.
    :param options: storage options in delta-rs' names.
    """
    kind = STORE_SCHEMES[root.partition("://")[0]]
    return HdfsObjects(root) if kind is HDFS else CloudObjects(kind, root, options)
