# SPDX-License-Identifier: Apache-2.0
"""Spell the root of a lake in one way, and say where in it something is.

Documents name places below the root (``shop/orders``), so a lake may be mounted, copied and moved; where a place lies
is computed from the root of the job that needs it.
"""

from __future__ import annotations

import os
import re

from airflow_provider_cdc.core.lake.store_kinds import STORE_SCHEMES

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def canonical_root(root: str) -> str:
    """Return a root as all spellings of it are written: a local path, or an address such as ``s3://bucket/prefix``.

    Folds ``file://``, the names of clients for one store (``s3a://``), doubled slashes, ``/./`` and the slash at the
    end. Reads nothing: symlinks stay.
    """
    parts = _URL.fullmatch(root)
    scheme, path = ("file", root) if parts is None else (parts[1].lower(), parts[2])
    if scheme == "file":
        if parts is not None and path.startswith("localhost/"):
            path = path.removeprefix("localhost")
        return "/" + _folded(path if path.startswith("/") else os.path.abspath(path))
    kind = STORE_SCHEMES.get(scheme)
    return f"{scheme if kind is None else kind.schemes[0]}://{_folded(path)}"


def _folded(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def physical_root(root: str) -> str:
    """Return a root as the present machine sees it: of a local path without symlinks."""
    root = canonical_root(root)
    return os.path.realpath(root) if root.startswith("/") else root


def is_same_root(one: str, other: str) -> bool:
    """Return whether two spellings name one place, as far as the present machine can see."""
    if canonical_root(one) == canonical_root(other):
        return True
    one, other = physical_root(one), physical_root(other)
    if one == other:
        return True
    if not (one.startswith("/") and other.startswith("/")):
        return False
    try:
        return os.path.samefile(one, other)  # a folder that is mounted in two places
    except OSError:
        return False


def located(root: str, path: str) -> str:
    """Return where a place lies that a state names, below a root; empty for no place."""
    return f"{canonical_root(root)}/{path}" if path else ""
