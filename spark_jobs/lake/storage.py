# SPDX-License-Identifier: Apache-2.0
"""Read and write files next to the tables, on local disk and on object stores: change log, documents, locations."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyarrow import fs

from airflow_provider_cdc.core.errors import SinkError, UnavailableError, first_line
from airflow_provider_cdc.core.json_documents import json_bytes, json_data
from airflow_provider_cdc.core.lake.durable_files import create_file, replace_file
from airflow_provider_cdc.core.lake.hdfs_objects import demand_client
from airflow_provider_cdc.core.lake.object_store import Objects, open_objects
from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.lake.store_kinds import HDFS, S3, store_kind

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
        self.root = canonical_root(root)
        self.options = dict(options or {})
        kind = store_kind(self.root)
        self._local = kind is None
        authority, _, path = self.root.rpartition("://")[2].partition("/")
        in_bucket = "/".join(filter(None, (authority.partition("@")[0], path)))
        self._base = self.root if kind is None else f"/{path}" if kind is HDFS else in_bucket

    @cached_property
    def _fs(self) -> fs.FileSystem:
        return _file_system(self.root, self.options)

    @cached_property
    def _objects(self) -> Objects:
        return open_objects(self.root, self.options)

    @property
    def filesystem(self) -> fs.FileSystem:
        """The file system of :meth:`path`'s answers."""
        return self._fs

    def path(self, name: str) -> str:
        """Return a file's path inside :attr:`filesystem`."""
        return f"{self._base}/{name}"

    @contextmanager
    def access(self, name: str) -> Iterator[str]:
        """Give a file's path; what goes wrong inside the block becomes an error that names the file.

        :raises SinkError: ``log.missing``, the file is not there.
        :raises UnavailableError: ``log.unavailable``, the store failed; the same call may succeed later.
        """
        try:
            yield self.path(name)
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

    def make_folder(self, name: str) -> None:
        """Create a folder where the store has such a thing."""
        if self._local:
            with self.access(name) as path:
                self._fs.create_dir(path, recursive=True)

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
        with self.access(name) as path:
            if not self._local:
                return self._objects.read(name)
            if self._fs.get_file_info(path).type != fs.FileType.File:
                return None
            with self._fs.open_input_stream(path) as stream:
                return bytes(stream.read())

    @contextmanager
    def open_file(self, name: str) -> Iterator[pa.NativeFile]:
        """Open a file for reading at any offset; what goes wrong inside the block is raised as by :meth:`access`."""
        with self.access(name) as path, self._opened(name, path) as file:
            yield file

    def _opened(self, name: str, path: str) -> pa.NativeFile:
        return self._fs.open_input_file(path) if self._local else pa.PythonFile(self._objects.open(name), "r")

    def open_new(self, name: str) -> pa.NativeFile:
        """Open a file for writing; small writes, of which a Parquet file has dozens, reach the store together."""
        if isinstance(self._fs, fs.PyFileSystem):  # its writers take bytes, and nothing else that holds some
            return pa.PythonFile(self._objects.open_new(name), "w")
        return self._fs.open_output_stream(self.path(name), buffer_size=_GATHERED_BYTES)

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
        content = json_bytes(data)
        with self.access(name) as target:
            if not self._local:
                self._objects.put(name, content)
                return
            replace_file(target, content, durable=durable)

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
        if not self._local:
            return self._objects.create(name, content)
        return create_file(self.path(name), content, durable=durable)

    def folders(self, name: str, after: str = "") -> list[str]:
        """Return the names of the folders inside a folder that sort behind a name, sorted."""
        with self.access(name) as path:
            if self._local:
                with suppress(FileNotFoundError), os.scandir(path) as entries:
                    return sorted(entry.name for entry in entries if entry.name > after and entry.is_dir())
                return []
            return self._objects.folders(name, after)

    def holds_files(self, name: str) -> bool:
        """Return whether anything lies under a folder."""
        with self.access(name) as path:
            if not self._local:
                return self._objects.holds_any(name)
            selector = fs.FileSelector(path, allow_not_found=True, recursive=False)
            return bool(self._fs.get_file_info(selector))

    def files(self, name: str, suffix: str) -> list[tuple[str, int]]:
        """Return the files right in a folder whose names end with a suffix, each with its size in bytes, sorted."""
        with self.access(name) as path:
            infos = self._fs.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=False))
            there = [info for info in infos if info.type == fs.FileType.File and info.base_name.endswith(suffix)]
            return sorted((f"{name}/{info.base_name}", info.size) for info in there)

    def delete_file(self, name: str) -> None:
        """Remove a file."""
        with self.access(name) as path:
            if self._local:
                self._fs.delete_file(path)
            else:
                self._objects.delete(name)

    def delete_folder(self, name: str) -> None:
        """Remove a folder and all below it; nothing happens when it is not there."""
        with self.access(name) as path:
            if not self._local:
                self._objects.delete_all(name)
            elif self._fs.get_file_info(path).type == fs.FileType.Directory:
                self._fs.delete_dir(path)

    def delete_traces(self, name: str) -> None:
        """Remove what lies at a path of folders and below it, and then those of the path that are empty."""
        self.delete_folder(name)
        parents = name.split("/")[:-1]  # stores have no folders but the names of objects
        while self._local and parents and not self.holds_files("/".join(parents)):
            self.delete_folder("/".join(parents))
            parents.pop()


def _file_system(root: str, options: dict[str, str]) -> fs.FileSystem:
    kind = store_kind(root)
    if kind is None:
        return fs.LocalFileSystem()
    if kind is S3:
        return _s3(options)
    if kind is HDFS:
        return _hdfs(root)
    from obstore.fsspec import FsspecStore

    scheme: Any = kind.schemes[0]
    config: Any = kind.config(root, options)
    store = FsspecStore(scheme, config=config, client_options={"allow_http": kind.allows_http(options)})
    return fs.PyFileSystem(fs.FSSpecHandler(store))


def _hdfs(root: str) -> fs.FileSystem:
    demand_client(root)
    from hdfs_native.fsspec import HdfsFileSystem

    host, _, port = root.removeprefix("hdfs://").partition("/")[0].partition(":")
    # One that fsspec keeps is dropped in the child of a fork, which has none of its threads and waits for them.
    mine = HdfsFileSystem(host, int(port) if port else None, skip_instance_cache=True)
    return fs.PyFileSystem(fs.FSSpecHandler(mine))


def _s3(options: dict[str, str]) -> fs.FileSystem:
    endpoint = options.get("AWS_ENDPOINT_URL")
    return fs.S3FileSystem(
        access_key=options.get("AWS_ACCESS_KEY_ID"),
        secret_key=options.get("AWS_SECRET_ACCESS_KEY"),
        session_token=options.get("AWS_SESSION_TOKEN"),
        region=options.get("AWS_REGION") or options.get("AWS_DEFAULT_REGION"),
        endpoint_override=endpoint.split("://", 1)[1] if endpoint else None,
        scheme=endpoint.split("://", 1)[0] if endpoint else None,
        allow_bucket_creation=False,
        allow_delayed_open=True,  # small objects in one request instead of three
    )
