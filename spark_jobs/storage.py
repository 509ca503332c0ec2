"""Files beside the tables, on local disk and on object stores: the change log, documents, names of locations."""

from __future__ import annotations

import json
import uuid
from typing import Any

from pyarrow import fs

# characters that mean the same in a path, a URL and an object store's key; anything else is written ~XX per UTF-8 byte
_PLAIN = frozenset("_.- $@+=,()")


def path_part(name: str) -> str:
    """Return a database's or table's name as one part of a path, different for different names.

    Readable names stay what they are. ``%`` is no escape here: Delta readers decode it in paths.
    """
    text = "".join(c if (c.isalnum() and c.isprintable()) or c in _PLAIN else _escaped(c) for c in name)
    # no hidden or special folders, nothing that could be taken for our own
    if not text or text[0] in "._ " or text[-1] in ". ":
        text = _escaped(text[0]) + text[1:] if len(text) > 1 or text else "~"
    return text if text[-1] not in ". " else text[:-1] + _escaped(text[-1])


def _escaped(character: str) -> str:
    return "".join(f"~{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def table_location(root: str, database: str, table: str) -> str:
    """Return where the table that has this name now lies."""
    return f"{root.rstrip('/')}/{path_part(database)}/{path_part(table)}"


class Storage:
    """A folder on local disk or an object store.

    :param root: path or URL (``s3://bucket/prefix``).
    :param options: storage options in delta-rs' names (``AWS_ENDPOINT_URL``, ...).
    """

    def __init__(self, root: str, options: dict[str, str] | None = None) -> None:
        self.root = root.rstrip("/")
        self.options = dict(options or {})
        if self.root.startswith(("s3://", "s3a://")):
            self._fs: fs.FileSystem = _s3(self.options)
            self._base = self.root.split("://", 1)[1]
        elif "://" in self.root and not self.root.startswith("file://"):
            self._fs, self._base = fs.FileSystem.from_uri(self.root)
        else:
            self._fs, self._base = fs.LocalFileSystem(), self.root.removeprefix("file://")
        self._local = isinstance(self._fs, fs.LocalFileSystem)

    @property
    def filesystem(self) -> fs.FileSystem:
        """The file system of :meth:`path`'s answers."""
        return self._fs

    def path(self, name: str) -> str:
        """Return a file's path inside :attr:`filesystem`."""
        return f"{self._base}/{name}"

    def make_folder(self, name: str) -> None:
        """Create a folder where the store has such a thing."""
        if self._local:
            self._fs.create_dir(self.path(name), recursive=True)

    def read_json(self, name: str) -> Any | None:
        """Return a document, None when it is not there."""
        if self._fs.get_file_info(self.path(name)).type != fs.FileType.File:
            return None
        with self._fs.open_input_stream(self.path(name)) as stream:
            return json.loads(stream.read())

    def write_json(self, name: str, data: Any) -> None:
        """Write a document so that readers see all of it or nothing."""
        target = self.path(name)
        if self._local:
            self._fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
            part = f"{target}.{uuid.uuid4().hex}.part"
            with self._fs.open_output_stream(part) as stream:
                stream.write(json.dumps(data).encode())
            self._fs.move(part, target)
        else:  # an object appears whole when its upload ends
            with self._fs.open_output_stream(target) as stream:
                stream.write(json.dumps(data).encode())

    def holds_files(self, name: str) -> bool:
        """Return whether anything lies under a folder."""
        selector = fs.FileSelector(self.path(name), allow_not_found=True, recursive=False)
        return bool(self._fs.get_file_info(selector))

    def delete_folder(self, name: str) -> None:
        """Remove a folder and all below it; nothing happens when it is not there."""
        if self._fs.get_file_info(self.path(name)).type == fs.FileType.Directory:
            self._fs.delete_dir(self.path(name))


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
