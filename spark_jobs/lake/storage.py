# SPDX-License-Identifier: Apache-2.0
"""Read and write files next to the tables, on local disk and on object stores: change log, documents, locations."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.errors import SinkError, UnavailableError, first_line
from airflow_provider_cdc.core.json_documents import json_bytes, json_data
from airflow_provider_cdc.core.lake.object_store import Objects, open_objects
from airflow_provider_cdc.core.lake.roots import canonical_root

_GATHERED_BYTES = 256 << 10
_LONGEST = 255  # bytes: what file systems take as a name
# characters that mean the same in a path, a URL and an object store's key; anything else is written ~XX per UTF-8 byte
_PLAIN = frozenset("_.- $@+=,()")


def path_part(name: str) -> str:
    """Return a database's or table's name as one part of a path, different for different names.

    Readable names stay what they are. ``%`` is not used as an escape: Delta readers decode it in paths.
    """
    text = "".join(c if (c.isalnum() and c.isprintable()) or c in _PLAIN else _escaped(c) for c in name)
    # no hidden or special folders, nothing that could be taken for our own
    if not text or text[0] in "._ " or text[-1] in ". ":
        text = _escaped(text[0]) + text[1:] if len(text) > 1 or text else "~"
    text = text if text[-1] not in ". " else text[:-1] + _escaped(text[-1])
    return text if len(text.encode()) <= _LONGEST else _shortened(text)


def _shortened(part: str) -> str:
    """Return the beginning of a part with a digest of all of it, behind a mark that no escape has."""
    digest = hashlib.blake2b(part.encode(), digest_size=16).hexdigest()
    return part.encode()[: _LONGEST - len(digest) - 2].decode(errors="ignore") + "~-" + digest


def _escaped(character: str) -> str:
    return "".join(f"~{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


class Storage:
    """A folder on local disk or an object store.

    :param root: path or URL (``s3://bucket/prefix``).
    :param options: storage options in delta-rs' names (``AWS_ENDPOINT_URL``, ...).
    """

    def __init__(self, root: str, options: dict[str, str] | None = None) -> None:
        self.root = self._folder = canonical_root(root)
        self.options = dict(options or {})

    @cached_property
    def _objects(self) -> Objects:
        return open_objects(self._folder, self.options)

    @contextmanager
    def access(self, name: str) -> Iterator[None]:
        """Let what goes wrong inside the block become an error that names the file.

        :raises SinkError: ``log.missing``, the file is not there.
        :raises UnavailableError: ``log.unavailable``, the store failed; the same call may succeed later.
        """
        try:
            yield
        except FileNotFoundError:
            raise SinkError(
                "log.missing",
                "a file of the change log is gone",
                where={"path": f"{self.root}/{name}"},
                hint="restore the lake's _cdc folder; without it, take a new snapshot of the tables that need the file",
            ) from None
        except OSError as error:
            raise UnavailableError(
                "log.unavailable",
                f"the lake's store failed: {first_line(error)}",
                where={"path": f"{self.root}/{name}"},
                hint="check the store's free space, rights and network, then run again; nothing is half written",
            ) from error

    def read_json(self, name: str) -> Any | None:
        """Return a document, None when it is not there.

        :raises SinkError: ``log.damaged``, the file holds no JSON.
        """
        data = self._read(name)
        if data is None:
            return None
        try:
            return json_data(data)
        except ValueError:
            raise self.damaged(name, f"a document of the lake cannot be read ({len(data)} bytes)") from None

    def damaged(self, name: str, message: str) -> SinkError:
        """Return the error of a file whose content cannot be read."""
        return SinkError(
            "log.damaged",
            message,
            where={"path": f"{self.root}/{name}"},
            hint="restore the file from a backup of the lake",
        )

    def _read(self, name: str) -> bytes | None:
        with self.access(name):
            return self._objects.read(name)

    @contextmanager
    def open_file(self, name: str) -> Iterator[pa.NativeFile]:
        """Open a file for reading at any offset; what goes wrong inside the block is raised as by :meth:`access`."""
        with self.access(name), self.opened(name) as file:
            yield file

    def opened(self, name: str) -> pa.NativeFile:
        """Open a file for reading at any offset.

        :raises OSError: the store failed.
        """
        file = self._objects.open(name)
        if not isinstance(file, io.FileIO):
            return pa.PythonFile(file, "r")
        with file:
            return pa.OSFile(file.name)  # Arrow reads local files without Python

    def open_new(self, name: str) -> pa.NativeFile:
        """Open a file for writing; small writes, of which a Parquet file has dozens, reach the store together."""
        return pa.output_stream(self._objects.open_new(name), buffer_size=_GATHERED_BYTES)

    def read_unfinished(self, name: str) -> Any | None:
        """Return a document of a batch that has not ended, None when it is not there or was cut off by a crash."""
        try:
            return self.read_json(name)
        except SinkError as error:
            if error.code != "log.damaged":
                raise
            return None

    def write_json(self, name: str, data: Any, *, durable: bool = True) -> None:
        """Write a document so that readers see all of it or nothing.

        :param durable: whether that holds after a power loss too; if not, the document may be empty or missing then.
        """
        with self.access(name):
            self._objects.put(name, json_bytes(data), durable=durable)

    def create_json(self, name: str, data: Any) -> bool:
        """Write a document unless one is there; of several writers exactly one succeeds.

        :return: whether this call wrote it.
        """
        with self.access(name):
            return self.create(name, json_bytes(data))

    def create(self, name: str, content: bytes, *, durable: bool = True) -> bool:
        """Write a file unless one is there; of several writers exactly one succeeds.

        :param durable: whether to wait until a local disk has it.
        :return: whether this call wrote it.
        :raises OSError: the store failed.
        """
        return self._objects.create(name, content, durable=durable)

    def folders(self, name: str, after: str = "") -> list[str]:
        """Return the names of the folders inside a folder that sort behind a name, sorted."""
        with self.access(name):
            return self._objects.folders(name, after)

    def holds_files(self, name: str) -> bool:
        """Return whether anything lies under a folder."""
        with self.access(name):
            return self._objects.holds_any(name)

    def files(self, name: str, suffix: str) -> list[tuple[str, int]]:
        """Return the files right in a folder whose names end with a suffix, each with its size in bytes, sorted."""
        with self.access(name):
            there = self._objects.entries(name)[1]
        front = f"{name}/" if name else ""
        return [(front + file, size) for file, size in there if file.endswith(suffix)]

    def names(self, name: str) -> list[str]:
        """Return the names of the files below a folder, without the folder's, sorted."""
        with self.access(name):
            return self._objects.names(name)

    def modified(self, name: str) -> float:
        """Return when a file was written last, in seconds since 1970."""
        with self.access(name):
            return self._objects.modified(name)

    def delete_file(self, name: str) -> None:
        """Remove a file."""
        with self.access(name):
            self._objects.delete(name)

    def delete_folder(self, name: str, *, traces: bool = False) -> None:
        """Remove a folder and all below it; nothing happens when it is not there.

        :param traces: whether to remove folders above it that are empty then, too.
        """
        with self.access(name):
            self._objects.delete_all(name, traces=traces)
