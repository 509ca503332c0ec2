# SPDX-License-Identifier: Apache-2.0
"""Read and write objects: conditional writes, listings from a name on. Errors are :class:`OSError`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.lake.store_kinds import STORE_SCHEMES

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_TAIL_BYTES = 64 << 10


def open_objects(root: str, options: Mapping[str, str]) -> ObjectStore:
    """Open an object store as a client with conditional writes and listings from a name on.

    pyarrow's file systems lack both.

    :param root: canonical, of one of :data:`STORE_SCHEMES`.
    :param options: storage options in delta-rs' names.
    """
    from obstore.store import from_url

    kind = STORE_SCHEMES[root.partition("://")[0]]
    config: Any = kind.config(root, options)
    return from_url(root, config=config, client_options={"allow_http": kind.allows_http(options)})


def create_object(store: ObjectStore, name: str, content: bytes) -> bool:
    """Write an object unless one is there; return whether this call wrote it."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError

    try:
        obstore.put(store, name, content, mode="create")
    except AlreadyExistsError:
        return False
    except BaseError as error:
        raise OSError(str(error)) from None
    return True


def put_object(store: ObjectStore, name: str, content: bytes) -> None:
    """Write an object, or replace it."""
    import obstore
    from obstore.exceptions import BaseError

    try:
        obstore.put(store, name, content)
    except BaseError as error:
        raise OSError(str(error)) from None


def read_object(store: ObjectStore, name: str) -> bytes | None:
    """Return an object's content, None where it does not exist."""
    import obstore
    from obstore.exceptions import BaseError

    try:
        return bytes(obstore.get(store, name).bytes())
    except FileNotFoundError:
        return None
    except BaseError as error:
        raise OSError(str(error)) from None


class ObjectFile(io.RawIOBase):
    """Reads an object at any offset; its end, where Parquet and Arrow have their footers, comes with the opening.

    An answer that is cut off anywhere is an error or is asked for again: pyarrow's own reader takes one that ends
    inside its headers for an empty or a shorter file.

    :raises FileNotFoundError: the object does not exist.
    """

    def __init__(self, store: ObjectStore, name: str) -> None:
        import obstore
        from obstore.store import AzureStore

        self._store, self._name, self._at = store, name, 0
        with _as_os_error():
            if isinstance(store, AzureStore):  # it has no ranges that end at the end
                self._size = int(obstore.head(store, name)["size"])
                start = max(0, self._size - _TAIL_BYTES)
                self._tail = bytes(obstore.get_range(store, name, start=start, end=self._size)) if self._size else b""
            else:
                answer = obstore.get(store, name, options={"range": {"suffix": _TAIL_BYTES}})
                self._size, self._tail = int(answer.meta["size"]), bytes(answer.bytes())
        self._tail_start = self._size - len(self._tail)

    def readable(self) -> bool:  # noqa: D102
        return True

    def seekable(self) -> bool:  # noqa: D102
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:  # noqa: D102
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, all that are left without a size."""
        import obstore

        start = self._at
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if end <= start:
            return b""
        if start >= self._tail_start:
            content = self._tail[start - self._tail_start : end - self._tail_start]
        else:
            with _as_os_error():
                content = bytes(obstore.get_range(self._store, self._name, start=start, end=end))
        self._at = end
        return content


class ObjectUpload(io.RawIOBase):
    """Writes an object that appears whole when it is closed."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        import obstore

        self._writer = obstore.open_writer(store, name)

    def writable(self) -> bool:  # noqa: D102
        return True

    def write(self, content: Any) -> int:
        """Take the next bytes."""
        with _as_os_error():
            return self._writer.write(bytes(content))

    def close(self) -> None:
        """Let the object appear."""
        if not self.closed:
            with _as_os_error():
                self._writer.close()
        super().close()


@contextmanager
def _as_os_error() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError:
        raise
    except BaseError as error:
        raise OSError(str(error)) from None


def has_objects(store: ObjectStore, name: str) -> bool:
    """Return whether any object's name begins with a folder's."""
    import obstore
    from obstore.exceptions import BaseError

    try:
        return any(page for page in obstore.list(store, f"{name}/", chunk_size=1))
    except BaseError as error:
        raise OSError(str(error)) from None


def object_folders(store: ObjectStore, name: str, after: str) -> list[str]:
    """List keys behind a name only: the cost does not grow with the number of folders before it."""
    import obstore
    from obstore.exceptions import BaseError

    names: set[str] = set()
    start = f"{name}/{after}/~" if after else None  # behind every key inside the folder ``after``
    try:
        for page in obstore.list(store, f"{name}/", offset=start):
            names.update(item["path"][len(name) + 1 :].split("/", 1)[0] for item in page)
    except BaseError as error:
        raise OSError(str(error)) from None
    return sorted(names - {""})  # stores have an empty object of the folder itself where one in it was removed


def delete_object(store: ObjectStore, name: str) -> None:
    """Remove an object; unlike pyarrow it leaves no empty object in the place of its folder."""
    import obstore

    with _as_os_error():
        obstore.delete(store, name)


def delete_objects(store: ObjectStore, folder: str) -> None:
    """Remove all objects in a folder, as :func:`delete_object` does."""
    import obstore

    names = [f"{folder}/{name}" for name in object_names(store, folder)]
    with _as_os_error():
        if names:
            obstore.delete(store, names)


def object_names(store: ObjectStore, folder: str) -> list[str]:
    """Return the names of the objects in a folder, without the folder's, sorted."""
    import obstore
    from obstore.exceptions import BaseError

    try:
        return sorted(item["path"][len(folder) + 1 :] for page in obstore.list(store, f"{folder}/") for item in page)
    except BaseError as error:
        raise OSError(str(error)) from None


def object_entries(store: ObjectStore, folder: str) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the names of folders directly in a folder, and those of its objects with their sizes, sorted.

    :param folder: empty for the root.
    """
    import obstore
    from obstore.exceptions import BaseError

    prefix = f"{folder}/" if folder else ""
    try:
        listed = obstore.list_with_delimiter(store, prefix or None)
    except BaseError as error:
        raise OSError(str(error)) from None
    folders = (path.rstrip("/")[len(prefix) :] for path in listed["common_prefixes"])
    objects = ((item["path"][len(prefix) :], int(item["size"])) for item in listed["objects"])
    return sorted(filter(None, folders)), sorted(item for item in objects if item[0])
