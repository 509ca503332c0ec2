# SPDX-License-Identifier: Apache-2.0
"""Keep files in HDFS as objects: each appears whole, by a rename."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from hdfs_native import Client

_FOLDER_MODE = 0o755
_PART = re.compile(r"\.[0-9a-f]{32}\.part$")  # of the name of an upload


class HdfsObjects:
    """Files below an address of HDFS.

    Where the cluster is configured, and who is asking, is the environment's: ``HADOOP_CONF_DIR``, ``HADOOP_USER_NAME``,
    a Kerberos ticket.

    :param root: canonical, as ``hdfs://namenode:8020/lake`` or ``hdfs://nameservice/lake``.
    :raises ConfigurationError: the package ``hdfs-native`` is not installed.
    """

    def __init__(self, root: str) -> None:
        if find_spec("hdfs_native") is None:
            raise ConfigurationError([f"{root} needs the package hdfs-native: install the extra hdfs"])
        from hdfs_native import Client

        authority, _, self._root = root.removeprefix("hdfs://").partition("/")
        self._client = Client(f"hdfs://{authority}")

    def create(self, name: str, content: bytes, *, durable: bool = True) -> bool:  # noqa: D102 - the contract says it
        return self._written(name, content, overwrite=False)

    def put(self, name: str, content: bytes, *, durable: bool = True) -> None:  # noqa: D102
        self._written(name, content, overwrite=True)

    def _written(self, name: str, content: bytes, overwrite: bool) -> bool:
        with self._upload(name, overwrite) as upload:
            upload.write(content)
        return upload.is_there

    def _upload(self, name: str, overwrite: bool) -> _Upload:
        return _Upload(self._client, self._path(name), overwrite)

    def read(self, name: str) -> bytes | None:  # noqa: D102
        try:
            with _as_os_error(), self._client.read(self._path(name)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def open(self, name: str) -> io.RawIOBase:  # noqa: D102
        with _as_os_error():
            return _File(self._client.read(self._path(name)))

    def open_new(self, name: str) -> io.RawIOBase:  # noqa: D102
        return self._upload(name, overwrite=True)

    def holds_any(self, folder: str) -> bool:  # noqa: D102
        return any(not status.isdir for status in self._listed(folder, deep=True))

    def folders(self, folder: str, after: str = "") -> list[str]:  # noqa: D102
        return [name for name in self.entries(folder)[0] if name > after]

    def names(self, folder: str) -> list[str]:  # noqa: D102
        start = len(self._path(folder)) + 1
        return sorted(status.path[start:] for status in self._listed(folder, deep=True) if not status.isdir)

    def entries(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:  # noqa: D102
        listed = [(status.path.rpartition("/")[2], status) for status in self._listed(folder, deep=False)]
        folders = sorted(name for name, status in listed if status.isdir)
        return folders, sorted((name, status.length) for name, status in listed if not status.isdir)

    def modified(self, name: str) -> float:  # noqa: D102
        with _as_os_error():
            return float(self._client.get_file_info(self._path(name)).modification_time / 1000)

    def delete(self, name: str) -> None:  # noqa: D102
        with _as_os_error():
            self._client.delete(self._path(name))

    def delete_all(self, folder: str, *, traces: bool = False) -> None:  # noqa: D102
        with suppress(FileNotFoundError), _as_os_error():
            if self._client.get_file_info(self._path(folder)).isdir:
                self._client.delete(self._path(folder), recursive=True)

    def _path(self, name: str) -> str:
        return "/" + "/".join(filter(None, (self._root, name)))

    def _listed(self, folder: str, deep: bool) -> list[Any]:
        """Return folders and files; of an upload that is under way, or was killed, nothing is there.

        HDFS lists a file as itself.
        """
        path = self._path(folder)
        try:
            with _as_os_error():
                listed = [one for one in self._client.list_status(path, recursive=deep) if one.path != path]
                return [status for status in listed if status.isdir or not _PART.search(status.path)]
        except FileNotFoundError:
            return []


class _Upload(io.RawIOBase):
    """Writes a file that appears whole when it is closed, and does not appear if a part of it could not be written."""

    def __init__(self, client: Client, path: str, overwrite: bool) -> None:
        self._client, self._path, self._overwrite = client, path, overwrite
        self.is_there = self._failed = False
        self._part = f"{path}.{uuid4().hex}.part"
        with _as_os_error():
            client.mkdirs(path.rpartition("/")[0], _FOLDER_MODE, create_parent=True)
            self._writer = client.create(self._part)

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        try:
            with _as_os_error():
                return int(self._writer.write(bytes(content)))
        except BaseException:
            self._failed = True
            raise

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with _as_os_error():
            self._writer.close()
            try:
                if not self._failed:
                    self._client.rename(self._part, self._path, overwrite=self._overwrite)
                    self.is_there = True
            except FileExistsError:
                pass
            if not self.is_there:
                self._client.delete(self._part)


class _File(io.RawIOBase):
    """Reads a file at any offset."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._reader.seek(offset, whence)
        return int(self._reader.tell())

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def read(self, size: int | None = -1) -> bytes:
        with _as_os_error():
            return bytes(self._reader.read(-1 if size is None else size))


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # what a name node refuses for reasons of its own
        raise OSError(str(error)) from None
