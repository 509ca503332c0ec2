# SPDX-License-Identifier: Apache-2.0
"""Keep objects in a cloud's object store through obstore: pyarrow's file systems lack conditional writes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.lake.store_kinds import StoreKind

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_TAIL_BYTES = 64 << 10


class CloudObjects:
    """Objects below an address of a store.

    :param root: canonical.
    :param options: storage options in delta-rs' names.
    """

    def __init__(self, kind: StoreKind, root: str, options: Mapping[str, str]) -> None:
        from obstore.store import from_url

        config: Any = kind.config(root, options)
        self._store = from_url(root, config=config, client_options={"allow_http": kind.allows_http(options)})

    def create(self, name: str, content: bytes, *, durable: bool = True) -> bool:  # noqa: D102 - the contract says it
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with _as_os_error():
            try:
                obstore.put(self._store, name, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def put(self, name: str, content: bytes, *, durable: bool = True) -> None:  # noqa: D102
        import obstore

        with _as_os_error():
            obstore.put(self._store, name, content)

    def read(self, name: str) -> bytes | None:  # noqa: D102
        import obstore

        with _as_os_error():
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def open(self, name: str) -> io.RawIOBase:  # noqa: D102
        return _ObjectFile(self._store, name)

    def open_new(self, name: str) -> io.RawIOBase:  # noqa: D102
        return _ObjectUpload(self._store, name)

    def holds_any(self, folder: str) -> bool:  # noqa: D102
        import obstore

        with _as_os_error():
            return any(page for page in obstore.list(self._store, f"{folder}/", chunk_size=1))

    def folders(self, folder: str, after: str = "") -> list[str]:
        """List keys behind a name only: the cost does not grow with the number of folders before it."""
        import obstore

        names: set[str] = set()
        start_of = f"{folder}/" if folder else ""
        start = f"{start_of}{after}/~" if after else None  # behind every key inside the folder ``after``
        with _as_os_error():
            for page in obstore.list(self._store, start_of or None, offset=start):
                parts = (item["path"][len(start_of) :].partition("/") for item in page)
                names.update(name for name, slash, _ in parts if slash)
        return sorted(names - {""})  # stores have an empty object of the folder itself where one in it was removed

    def names(self, folder: str) -> list[str]:  # noqa: D102
        import obstore

        prefix = f"{folder}/" if folder else ""
        with _as_os_error():
            pages = list(obstore.list(self._store, prefix or None))
        return sorted(item["path"][len(prefix) :] for page in pages for item in page)

    def entries(self, folder: str) -> tuple[list[str], list[tuple[str, int]]]:  # noqa: D102
        import obstore

        prefix = f"{folder}/" if folder else ""
        with _as_os_error():
            listed = obstore.list_with_delimiter(self._store, prefix or None)
        folders = (path.rstrip("/")[len(prefix) :] for path in listed["common_prefixes"])
        objects = ((item["path"][len(prefix) :], int(item["size"])) for item in listed["objects"])
        return sorted(filter(None, folders)), sorted(item for item in objects if item[0])

    def modified(self, name: str) -> float:  # noqa: D102
        import obstore

        with _as_os_error():
            return float(obstore.head(self._store, name)["last_modified"].timestamp())

    def delete(self, name: str) -> None:
        """Remove an object; unlike pyarrow it leaves no empty object in the place of its folder."""
        import obstore

        with _as_os_error():
            obstore.delete(self._store, name)

    def delete_all(self, folder: str, *, traces: bool = False) -> None:  # noqa: D102
        import obstore

        names = [f"{folder}/{name}" for name in self.names(folder)]
        with _as_os_error():
            if names:
                obstore.delete(self._store, names)


class _ObjectFile(io.RawIOBase):
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

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes; return how many there were."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

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


class _ObjectUpload(io.RawIOBase):
    """Writes an object that appears whole when it is closed."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        import obstore

        self._writer = obstore.open_writer(store, name)

    def writable(self) -> bool:
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
