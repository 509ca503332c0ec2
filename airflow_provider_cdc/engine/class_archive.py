# SPDX-License-Identifier: Apache-2.0
"""Keep the classes that Spark loads in a class-data sharing archive, which later JVMs map instead of loading classes.

Dynamic archives are described in JEP 350. One saves a driver about half of its CPU time; to write it takes the JVM
some seconds at its end. The second batch on a machine writes it: where only one batch runs (a container for each task),
it would cost time and gain nothing. The JVM itself checks that Java and jars are those of the archive, and ignores the
archive otherwise. A machine keeps the few archives that were used last: each environment has its own.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_cdc.engine.cache import is_private, private_folder

_SEEN = ".seen"
_TRIES = 3  # each attempt takes seconds, so there is a limit
_ARCHIVES = 4  # two environments, each with and without a session; an archive takes 60 to 200 MB
# The JVM logs every class that it leaves out of the archive.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java and one Spark.

    :param stored: its file for later starts.
    :param output: file that the JVM writes now, None if this start does not write an archive.
    """

    stored: Path
    output: Path | None

    @property
    def options(self) -> str:
        """Return the options of the driver's JVM."""
        if self.output is not None:
            return f"{shlex.quote(f'-XX:ArchiveClassesAtExit={self.output}')} {_QUIET}"
        return f"{shlex.quote(f'-XX:SharedArchiveFile={self.stored}')} {_QUIET}" if self.stored.exists() else ""

    def ended(self, well: bool) -> None:
        """Store the archive that the JVM wrote; after a crash delete the archive it used, which may be the cause.

        :param well: whether the JVM ended by itself.
        """
        if not well:
            _delete(self.stored)
        elif self.output is not None and self.output.exists():
            part = self.stored.with_name(f".{self.stored.name}.{os.getpid()}")
            try:
                shutil.copyfile(self.output, part)
                part.chmod(0o600)
                with part.open("rb") as copy:
                    os.fsync(copy.fileno())  # a truncated archive would crash the JVM
                part.replace(self.stored)
                used = sorted(self.stored.parent.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
                for file in used[:-_ARCHIVES]:
                    _delete(file)
            except OSError:  # a full disk costs speed, but no batch
                part.unlink(missing_ok=True)


def class_archive(
    java: Path, spark: Path, conf: Path, session: bool, cache: Path, scratch: Path
) -> ClassArchive | None:
    """Return the archive for a start, None where this Java cannot make one.

    :param java: home of the Java that runs Spark.
    :param spark: home of Spark; ``conf`` is the folder of its configuration, which Spark puts before its jars.
    :param session: whether the batch needs Spark's SQL classes too.
    :param cache: the project's cache folder.
    :param scratch: folder of this batch, where the JVM may write.
    :raises ConfigurationError: others can write to the cache.
    """
    if not (java / "lib" / "server" / "classes.jsa").is_file():  # a dynamic archive extends Java's own
        return None
    if conf.is_dir() and any(conf.iterdir()):  # archives allow only jars on the class path
        return None
    identity = [str(java), _text(java / "release"), str(spark), str((spark / "jars").stat().st_mtime_ns), str(session)]
    name = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:20]
    stored = cache / "classes" / f"{name}.jsa"
    for folder in (cache, stored.parent):
        private_folder(folder)
    if is_private(stored):
        with suppress(OSError):  # on a read-only disk nothing is deleted either
            os.utime(stored)
        return ClassArchive(stored, None)
    try:
        stored.unlink(missing_ok=True)  # written by another user: Java would run the classes in it
        with stored.with_suffix(_SEEN).open("ab") as starts:  # one byte for each start
            starts.write(b".")
            makes = 1 < starts.tell() <= 1 + _TRIES
    except OSError:  # a full or read-only disk costs speed, but no batch
        return None
    return ClassArchive(stored, scratch / "classes.jsa" if makes else None)


def _delete(stored: Path) -> None:
    for file in (stored, stored.with_suffix(_SEEN)):
        file.unlink(missing_ok=True)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
