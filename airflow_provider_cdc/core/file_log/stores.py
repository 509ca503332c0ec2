# SPDX-License-Identifier: Apache-2.0
"""List and read files below a root, on a local disk or on an object store."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, BinaryIO, Protocol

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.lake.object_store import Objects, open_objects
from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.lake.store_kinds import store_kind

_READ_BYTES = 4 << 20  # of one request to an object store

Entries = tuple[list[str], list[tuple[str, int]]]
"""Names of folders, and names and sizes of files."""


class FileStore(Protocol):
    """Files below a root; errors are :class:`OSError`."""

    root: str

    def entries(self, folder: str) -> Entries:
        """Return what is directly in a folder, nothing where it is not there; empty for the root."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        ...


def open_store(root: str, options: Mapping[str, str] | None = None) -> FileStore:
    """Open the store of a root.

    :param options: storage options in delta-rs' names.
    :raises ConfigurationError: it is on a store that nothing here reads.
    """
    root = canonical_root(root)
    if root.startswith("/"):
        return _LocalFiles(root)
    if store_kind(root) is None:
        raise ConfigurationError([f"source.folder: {root!r} is neither a local folder nor on an object store"])
    return _OnStore(root, dict(options or {}))


class _LocalFiles:
    def __init__(self, root: str) -> None:
        self.root = root

    def entries(self, folder: str) -> Entries:
        if not folder and not os.path.isdir(self.root):
            raise ConfigurationError([f"source.folder: there is no folder {self.root}"])
        try:
            entries = os.scandir(os.path.join(self.root, folder))
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        folders: list[str] = []
        files: list[tuple[str, int]] = []
        with entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.name)
                else:
                    files.append((entry.name, entry.stat().st_size))
        return sorted(folders), sorted(files)

    def open(self, path: str) -> BinaryIO:
        return open(os.path.join(self.root, path), "rb")


class _OnStore:
    def __init__(self, root: str, options: dict[str, str]) -> None:
        self.root, self._options = root, options

    @cached_property
    def _store(self) -> Objects:
        return open_objects(self.root, self._options)

    def entries(self, folder: str) -> Entries:
        return self._store.entries(folder)

    def open(self, path: str) -> BinaryIO:
        return io.BufferedReader(_Streamed(self._store.open(path)), _READ_BYTES)


class _Streamed(io.RawIOBase):
    """Let an object be read by large requests, whatever is asked for at a time."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer)) or b""
        buffer[: len(content)] = content
        return len(content)
