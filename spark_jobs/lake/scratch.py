# SPDX-License-Identifier: Apache-2.0
"""Open the lake of a job: as it is, or so that a preview writes into a folder of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.lake.storage import Storage


def storage_options(job: JobDocument, secrets: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the options of a job's object store, secrets included."""
    return {**job.storage, **secrets.get("storage", {})}


def lake_of(job: JobDocument, secrets: dict[str, dict[str, str]]) -> Storage:
    """Return the storage that a job's files are in; that of a preview never writes to the lake."""
    options = storage_options(job, secrets)
    return Storage(job.lake_root, options) if not job.scratch else ScratchStorage(job.lake_root, options, job.scratch)


class ScratchStorage(Storage):
    """A lake whose files are read, and a local folder that takes what is written and is read first.

    :param folder: local path.
    """

    def __init__(self, root: str, options: dict[str, str], folder: str) -> None:
        super().__init__(folder, options)
        self._lake = Storage(root, options)
        self.root = self._lake.root  # that errors name

    def _read(self, name: str) -> bytes | None:
        content = super()._read(name)
        return self._lake._read(name) if content is None else content

    def opened(self, name: str) -> pa.NativeFile:
        """Open a file for reading at any offset."""
        try:
            return super().opened(name)
        except FileNotFoundError:
            return self._lake.opened(name)

    def write_json(self, name: str, data: Any, *, durable: bool = True) -> None:
        """Write a document into the folder."""
        super().write_json(name, data, durable=durable)

    def create_json(self, name: str, data: Any) -> bool:
        """Write a document into the folder unless the lake has it."""
        if self._read(name) is not None:
            return False
        self.write_json(name, data)
        return True

    def folders(self, name: str, after: str = "") -> list[str]:
        """Return the names of the folders inside a folder that sort behind a name, sorted."""
        return sorted({*super().folders(name, after), *self._lake.folders(name, after)})

    def holds_files(self, name: str) -> bool:
        """Return whether the lake has anything under a folder."""
        return self._lake.holds_files(name)
