"""What travels to Spark: one deterministic zip of the kernel and the Spark side, made once per content."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.java import cache_folder

# The oldest time a zip can state: the same files give the same bytes on every machine.
_TIME = (1980, 1, 1, 0, 0, 0)
_PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Payload:
    """What the engines start with.

    :param archive: zip for ``--py-files``.
    :param folder: the same files unpacked, for this machine's own processes: their compiled form is kept there.
    :param main: the one file given to spark-submit.
    """

    archive: Path
    folder: Path
    main: Path


def payload(cache: Path | None = None) -> Payload:
    """Return the payload, building it when this content was not built before.

    :param cache: where built payloads are kept; the project's cache folder if None.
    """
    files = dict(_files())
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    home = (cache or cache_folder()) / "payload" / digest.hexdigest()[:20]
    built = Payload(
        home / "airflow_cdc_payload.zip", home / "files", home / "files" / "spark_jobs" / "launch" / "run.py"
    )
    if not built.archive.exists():
        _write(built, files)
    return built


def archive(files: dict[str, bytes]) -> bytes:
    """Return a zip that depends on nothing but names and contents."""
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
    """Name and content of every file that travels."""
    yield "airflow_provider_cdc/__init__.py", (_PACKAGE / "__init__.py").read_bytes()
    for base, name in ((_PACKAGE / "core", "airflow_provider_cdc/core"), (_spark_jobs(), "spark_jobs")):
        for file in sorted(base.rglob("*")):
            if file.is_file() and file.suffix != ".pyc" and not file.name.startswith("."):
                yield f"{name}/{file.relative_to(base).as_posix()}", file.read_bytes()


def _spark_jobs() -> Path:
    """The Spark side: inside the installed package, or beside the package in a checkout."""
    for folder in (_PACKAGE / "payload" / "spark_jobs", _PACKAGE.parent / "spark_jobs"):
        if (folder / "launch" / "run.py").is_file():
            return folder
    raise ConfigurationError(["the Spark side is missing from this installation; install airflow-provider-cdc again"])


def _write(built: Payload, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        _replace(built.folder / name, content)
    # The zip is last: where it is, everything is.
    _replace(built.archive, archive(files))


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
