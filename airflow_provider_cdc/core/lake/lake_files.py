# SPDX-License-Identifier: Apache-2.0
"""Read and write small whole files below the root of a lake, on a local disk or on an object store, without Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from airflow_provider_cdc.core.errors import UnavailableError, first_line
from airflow_provider_cdc.core.lake.object_store import Objects, open_objects
from airflow_provider_cdc.core.lake.roots import canonical_root


class LakeFiles:
    """Files below a root; names are relative to it, and a failing store is ``log.unavailable``.

    :param root: path or URL of the lake, or of a folder in it.
    :param options: storage options in delta-rs' names.
    """

    def __init__(self, root: str, options: Mapping[str, str] | None = None) -> None:
        self.root, self._options = canonical_root(root), dict(options or {})

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None where it is not there."""
        with self._access(name):
            return self._objects.read(name)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless one is there; of several writers exactly one succeeds.

        :return: whether this call wrote it.
        """
        with self._access(name):
            return self._objects.create(name, content)

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace it; readers see all of it or nothing."""
        with self._access(name):
            self._objects.put(name, content)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files below a folder, none where it is not there."""
        with self._access(folder):
            return self._objects.names(folder)

    @cached_property
    def _objects(self) -> Objects:
        return open_objects(self.root, self._options)

    @contextmanager
    def _access(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UnavailableError(
                "log.unavailable",
                f"the lake's store failed: {first_line(error)}",
                where={"path": f"{self.root}/{name}"},
                hint="check the store's free space, rights and network, then run again; nothing is half written",
            ) from error
