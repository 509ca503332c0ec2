# SPDX-License-Identifier: Apache-2.0
"""Build the payload for Spark: one deterministic zip of the kernel and the Spark side, once per content."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.engine.cache import cache_folder, is_private, private_folder, writing

# The oldest time a zip can state: the same files give the same bytes on every machine.
_TIME = (1980, 1, 1, 0, 0, 0)
_PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Payload:
    """Files that an engine starts with.

    :param archive: zip for ``--py-files``.
    :param folder: the same files unpacked, for Spark's processes on this machine: their compiled form is kept there.
    :param main: the one file given to spark-submit.
    """

    archive: Path
    folder: Path
    main: Path


def payload(cache: Path | None = None) -> Payload:
    """Return the payload; write its files that are missing or differ.

    :param cache: where built payloads are kept; the project's cache folder if None.
    :raises ConfigurationError: others can write to that folder, or this user cannot.
    :raises UnavailableError: its disk is full.
    """
    cache = cache or cache_folder()
    files = dict(_files())
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    home = cache / "payload" / digest.hexdigest()[:20]
    built = Payload(
        home / "airflow_cdc_payload.zip", home / "files", home / "files" / "spark_jobs" / "launch" / "run.py"
    )
    for folder in (cache, cache / "payload", home, built.folder):
        private_folder(folder)
    with writing(cache):
        _repair(built, files)
    return built


def archive(files: dict[str, bytes]) -> bytes:
    """Return a zip that depends only on names and contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            packed.writestr(entry, content)
    return buffer.getvalue()


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file of the payload."""
    yield "airflow_provider_cdc/__init__.py", (_PACKAGE / "__init__.py").read_bytes()
    for base, name in ((_PACKAGE / "core", "airflow_provider_cdc/core"), (spark_jobs(), "spark_jobs")):
        for file in sorted(base.rglob("*")):
            if file.is_file() and file.suffix != ".pyc" and not file.name.startswith("."):
                yield f"{name}/{file.relative_to(base).as_posix()}", file.read_bytes()


def spark_jobs() -> Path:
    """Return the Spark side: inside the installed package, or next to the package in a checkout."""
    for folder in (_PACKAGE / "payload" / "spark_jobs", _PACKAGE.parent / "spark_jobs"):
        if (folder / "launch" / "run.py").is_file():
            return folder
    raise ConfigurationError(["the Spark side is missing from this installation; install airflow-provider-cdc again"])


def _repair(built: Payload, files: dict[str, bytes]) -> None:
    """Write files that are missing or differ: cleaners of temporary files and full disks leave incomplete payloads."""
    for name, content in files.items():
        path = built.folder / name
        if not is_private(path) or path.read_bytes() != content:
            _replace(path, content)
    digest = built.archive.with_suffix(".sha256")
    if is_private(built.archive) and is_private(digest) and _digest(built.archive.read_bytes()) == digest.read_bytes():
        return
    packed = archive(files)
    _replace(built.archive, packed)
    _replace(digest, _digest(packed))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.chmod(0o600)
    part.replace(path)
