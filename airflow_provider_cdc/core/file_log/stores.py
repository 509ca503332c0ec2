# SPDX-License-Identifier: Apache-2.0
"""List and read files below a root, on a local disk or on an object store."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from functools import cached_property
from typing import BinaryIO

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.lake.object_store import Objects, open_objects
from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.lake.store_kinds import store_kind

_READ_BYTES = 4 << 20  # of one request to an object store

Entries = tuple[list[str], list[tuple[str, int]]]
"""Names of folders, and names and sizes of files."""


class FileStore:
    """Files below a root; errors are :class:`OSError`.

    :param options: storage options in delta-rs' names.
    :raises ConfigurationError: it is on a store that nothing here reads.
    """

    def __init__(self, root: str, options: Mapping[str, str] | None = None) -> None:
        self.root, self._options = canonical_root(root), dict(options or {})
        self._local = self.root.startswith("/")
        if not self._local and store_kind(self.root) is None:
            raise ConfigurationError([f"source.folder: {self.root!r} is neither a local folder nor on an object store"])

    @cached_property
    def _objects(self) -> Objects:
        return open_objects(self.root, self._options)

    def entries(self, folder: str) -> Entries:
        """Return what is directly in a folder, nothing where it is not there; empty for the root.

        :raises ConfigurationError: a local root that is not a folder.
        """
        if self._local and not folder and not os.path.isdir(self.root):
            raise ConfigurationError([f"source.folder: there is no folder {self.root}"])
        return self._objects.entries(folder)

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return io.BufferedReader(self._objects.open(path), _READ_BYTES)
