"""Spark's classes as the JVM has them in memory, kept in a file that later starts map instead of loading them anew.

Java calls this an application class-data sharing archive (JEP 350). It saves a driver about half of its CPU time, and
making it takes the JVM some seconds at its end: so the second batch on a machine makes it, since where there is one
batch only (a container of its own for every task) nothing would be gained. The JVM itself checks that Java and jars are
those of the file and otherwise goes without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

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

    def keep(self) -> None:
        """After the JVM's end: keep what it made, if it did."""
        if self.made is None or not self.made.exists():
            return
        part = self.kept.with_name(f".{self.kept.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # a full disk costs speed, no batch
            shutil.copyfile(self.made, part)
            part.replace(self.kept)


def class_archive(java: Path, spark: Path, session: bool, cache: Path, scratch: Path) -> ClassArchive | None:
    """Return the archive for a start, None where this Java cannot make one.

    :param java: home of the Java that runs Spark.
    :param spark: home of Spark.
    :param session: whether the batch needs Spark's SQL classes too.
    :param cache: the project's cache folder.
    :param scratch: folder of this batch, where the JVM may write.
    """
    if not (java / "lib" / "server" / "classes.jsa").is_file():  # ours can only be added to Java's own
        return None
    told = [str(java), _text(java / "release"), str(spark), str((spark / "jars").stat().st_mtime_ns), str(session)]
    name = hashlib.sha256("\0".join(told).encode()).hexdigest()[:20]
    kept, seen = cache / "classes" / f"{name}.jsa", cache / "classes" / f"{name}.seen"
    if kept.exists() or seen.exists():
        return ClassArchive(kept, None if kept.exists() else scratch / "classes.jsa")
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.touch()
    return ClassArchive(kept, None)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
