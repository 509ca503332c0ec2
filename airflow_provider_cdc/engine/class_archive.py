"""Spark's classes as the JVM has them in memory, kept in a file that later starts map instead of loading them anew.

Java calls this an application class-data sharing archive (JEP 350). It saves a driver about half of its CPU time, and
making it takes the JVM some seconds at its end: so the second batch on a machine makes it, since where there is one
batch only (a container of its own for every task) nothing would be gained. The JVM itself checks that Java and jars are
those of the file and otherwise goes without it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_cdc.cache import is_private, private_folder

_SEEN = ".seen"
_TRIES = 3  # what cannot be made is not tried for ever: each try takes seconds
# it tells at length which classes it leaves out, which is of no use to anyone here
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java and one Spark.

    :param kept: where it lies for later starts.
    :param made: where the JVM is to write it now, None if this start does not make it.
    """

    kept: Path
    made: Path | None

    @property
    def options(self) -> str:
        """What the driver's JVM is told."""
        if self.made is not None:
            return f"{shlex.quote(f'-XX:ArchiveClassesAtExit={self.made}')} {_QUIET}"
        return f"{shlex.quote(f'-XX:SharedArchiveFile={self.kept}')} {_QUIET}" if self.kept.exists() else ""

    def ended(self, well: bool) -> None:
        """After the JVM's end: keep what it made; of a JVM that crashed, forget what it used, which may be why.

        :param well: whether it ended by itself.
        """
        if not well:
            for file in (self.kept, self.kept.with_suffix(_SEEN)):
                file.unlink(missing_ok=True)
        elif self.made is not None and self.made.exists():
            part = self.kept.with_name(f".{self.kept.name}.{os.getpid()}")
            try:
                shutil.copyfile(self.made, part)
                part.chmod(0o600)
                with part.open("rb") as file:
                    os.fsync(file.fileno())  # of a file cut short the JVM would die
                part.replace(self.kept)
            except OSError:  # a full disk costs speed, no batch
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
    if not (java / "lib" / "server" / "classes.jsa").is_file():  # ours can only be added to Java's own
        return None
    if conf.is_dir() and any(conf.iterdir()):  # Java takes no files beside jars
        return None
    told = [str(java), _text(java / "release"), str(spark), str((spark / "jars").stat().st_mtime_ns), str(session)]
    name = hashlib.sha256("\0".join(told).encode()).hexdigest()[:20]
    kept = cache / "classes" / f"{name}.jsa"
    for folder in (cache, kept.parent):
        private_folder(folder)
    if is_private(kept):
        return ClassArchive(kept, None)
    try:
        kept.unlink(missing_ok=True)  # somebody else's: Java would run the classes in it
        with kept.with_suffix(_SEEN).open("ab") as starts:  # a byte for each
            starts.write(b".")
            makes = 1 < starts.tell() <= 1 + _TRIES
    except OSError:  # a full or read-only disk costs speed, no batch
        return None
    return ClassArchive(kept, scratch / "classes.jsa" if makes else None)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
