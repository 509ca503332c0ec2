# SPDX-License-Identifier: Apache-2.0
"""Write local files that are whole for every reader and survive a power loss."""

from __future__ import annotations

import errno
import os
import uuid

# what file systems without hard links, or without a sync of folders, answer
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


def synced_part(target: str, content: bytes, *, durable: bool = True) -> str:
    """Write content into a file next to its target and wait until the disk has it; return the file's path.

    :param durable: whether to wait.
    """
    os.makedirs(os.path.dirname(target), exist_ok=True)
    part = f"{target}.{uuid.uuid4().hex}.part"
    with open(part, "xb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    return part


def sync_folder(path: str) -> None:
    """Wait until the disk has the name of a file."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_LINKS:  # network file systems may not know it
            raise
    finally:
        os.close(folder)


def replace_file(target: str, content: bytes, *, durable: bool = True) -> None:
    """Write a file, or replace it.

    :param durable: whether to wait until the disk has it.
    """
    os.replace(synced_part(target, content, durable=durable), target)
    if durable:
        sync_folder(target)


def make_folder(path: str) -> None:
    """Create a folder with those above it, and wait until the disk has their names."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        os.makedirs(folder, exist_ok=True)
        sync_folder(folder)


def create_file(target: str, content: bytes, *, durable: bool = True) -> bool:
    """Write a file unless one is there; of several writers exactly one succeeds.

    :param durable: whether to wait until the disk has it.
    :return: whether this call wrote it.
    """
    part = synced_part(target, content, durable=durable)
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
        sync_folder(target)
    return True


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
