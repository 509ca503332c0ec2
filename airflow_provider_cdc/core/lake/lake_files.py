# SPDX-License-Identifier: Apache-2.0
"""Read and write small whole files below the root of a lake, on a local disk or on an object store, without Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from airflow_provider_cdc.core.errors import UnavailableError, first_line
from airflow_provider_cdc.core.lake.durable_files import create_file, make_folder, replace_file
from airflow_provider_cdc.core.lake.object_store import Objects, open_objects
from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.lake.store_kinds import store_kind


class LakeFiles:
    """Files below a root; names are relative to it, and a failing store is ``log.unavailable``.

    :param root: path or URL of the lake, or of a folder in it.
    :param options: storage options in delta-rs' names.
    """

    def __init__(self, root: str, options: Mapping[str, str] | None = None) -> None:
        self.root, self._options = canonical_root(root), dict(options or {})
        self._on_objects = store_kind(self.root) is not None

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None where it is not there."""
        with self._access(name) as path:
            if self._on_objects:
                return self._objects.read(name)
            try:
                with open(path, "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless one is there; of several writers exactly one succeeds.

        :return: whether this call wrote it.
        """
        with self._access(name) as path:
            if self._on_objects:
                return self._objects.create(name, content)
            make_folder(os.path.dirname(path))
            return create_file(path, content)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it; readers see all of it or nothing."""
        with self._access(name) as path:
            if self._on_objects:
                self._objects.put(name, content)
            else:
                replace_file(path, content)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, none where it is not there."""
        with self._access(folder) as path:
            if self._on_objects:
                return self._objects.names(folder)
            return os.listdir(path) if os.path.isdir(path) else []

    @cached_property
    def _objects(self) -> Objects:
        return open_objects(self.root, self._options)

    @contextmanager
    def _access(self, name: str) -> Iterator[str]:
        path = f"{self.root}/{name}"
        try:
            yield path
        except OSError as error:
            raise UnavailableError(
                "log.unavailable",
                f"the lake's store failed: {first_line(error)}",
                where={"path": path},
                hint="check the store's free space, rights and network, then run again; nothing is half written",
            ) from error
