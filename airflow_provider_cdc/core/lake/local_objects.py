# SPDX-License-Identifier: Apache-2.0
"""Keep objects as files of a local disk that are whole for every reader and survive a power loss."""

from __future__ import annotations

import errno
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# what file systems without hard links, or without a sync of folders, answer
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class LocalObjects:
    """Files below a folder.

    :param root: absolute path; it need not exist.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def create(self, name: str, content: bytes, *, durable: bool = True) -> bool:  # noqa: D102 - the contract says it
        target = self._path(name)
        part = _part(target, content, durable=durable)
        try:
            os.link(part, target)  # unlike a rename, this fails where the target is there
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _create_in_place(target, content)
        finally:
            os.unlink(part)
        if durable:
            _sync_folder(target)
        return True

    def put(self, name: str, content: bytes, *, durable: bool = True) -> None:  # noqa: D102
        target = self._path(name)
        os.replace(_part(target, content, durable=durable), target)
        if durable:
            _sync_folder(target)

    def read(self, name: str) -> bytes | None:  # noqa: D102
        try:
            with open(self._path(name), "rb") as file:
                return file.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def open(self, name: str) -> io.RawIOBase:  # noqa: D102
        return open(self._path(name), "rb", buffering=0)

    def open_new(self, name: str) -> io.RawIOBase:  # noqa: D102
        path = self._path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb", buffering=0)

    def holds_any(self, folder: str) -> bool:  # noqa: D102
        return next(self._below(folder), None) is not None

    def folders(self, folder: str, after: str = "") -> list[str]:  # noqa: D102
        with self._listed(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name > after and entry.is_dir())

    def names(self, folder: str) -> list[str]:  # noqa: D102
        start = len(self._path(folder).rstrip("/")) + 1
        return sorted(path[start:] for path in self._below(folder))

    def entries(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:  # noqa: D102
        folders: list[str] = []
        files: list[tuple[str, int]] = []
        with self._listed(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.name)
                    continue
                try:
                    files.append((entry.name, entry.stat().st_size))
                except FileNotFoundError:
                    if entry.is_symlink():  # else it was removed meanwhile
                        raise
        return sorted(folders), sorted(files)

    def modified(self, name: str) -> float:  # noqa: D102
        return os.stat(self._path(name)).st_mtime

    def delete(self, name: str) -> None:  # noqa: D102
        os.unlink(self._path(name))

    def delete_all(self, folder: str, *, traces: bool = False) -> None:  # noqa: D102
        path = self._path(folder)
        with suppress(FileNotFoundError, NotADirectoryError):
            shutil.rmtree(path)
        with suppress(OSError):  # it is not empty, or not there
            while traces and (path := os.path.dirname(path)).startswith(self._root + "/"):
                os.rmdir(path)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextmanager
    def _listed(self, folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Give what is directly in a folder, nothing where it is not there."""
        try:
            entries = os.scandir(self._path(folder))
        except (FileNotFoundError, NotADirectoryError):
            yield iter(())
            return
        with entries:
            yield entries

    def _below(self, folder: str) -> Iterator[str]:
        for path, _, names in os.walk(self._path(folder)):
            yield from (f"{path}/{name}" for name in names)


def _part(target: str, content: bytes, *, durable: bool) -> str:
    """Write content into a file next to its target; return the file's path.

    :param durable: whether to wait until the disk has it, and the names of new folders.
    """
    folder = os.path.dirname(target)
    if durable:
        _make_folder(folder)
    else:
        os.makedirs(folder, exist_ok=True)
    part = f"{target}.{uuid.uuid4().hex}.part"
    with open(part, "xb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    return part


def _make_folder(path: str) -> None:
    """Create a folder with those above it, and wait until the disk has their names."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        os.makedirs(folder, exist_ok=True)
        _sync_folder(folder)


def _sync_folder(path: str) -> None:
    """Wait until the disk has the name of a file."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_LINKS:  # network file systems may not know it
            raise
    finally:
        os.close(folder)


def _create_in_place(target: str, content: bytes) -> bool:
    """Create a file on a file system without hard links: a reader may see it cut off, which counts as not written."""
    try:
        with open(target, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        return False
    return True
