# SPDX-License-Identifier: Apache-2.0
"""Fetch locked jars, given by exact Maven coordinates and checksums, once into a cache."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from airflow_provider_cdc.engine.cache import cache_folder
from airflow_provider_cdc.engine.jars.lines import lock_of, spark_line
from airflow_provider_cdc.engine.jars.signatures import PASSWORD, write_truststore

__all__ = ["Jar", "JarError", "cache_folder", "fetch", "jar_cache", "lock_of", "read_lock", "spark_line"]

SETTINGS_VARIABLE = "AIRFLOW_CDC_IVY_SETTINGS"

# Exact coordinates make the POMs unnecessary; reading them is most of what a resolution costs.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""

_INCOMING = ".incoming-"

_LINE = re.compile(
    r"(?P<group>[^\s:]+):(?P<artifact>[^\s:]+):(?P<version>[^\s:]+)(:(?P<classifier>[^\s:@]+))?"
    r"(@(?P<extension>zip))? sha256=(?P<sha256>[0-9a-f]{64})"
)
_ARRIVED = re.compile(
    r"\[SUCCESSFUL ] (?P<group>[^#]+)#(?P<artifact>[^;]+);(?P<version>[^!]+)!"
    r"[^(\s]+?\.(?P<extension>jar|zip)(\((?P<classifier>[^)]+)\))?"
)


class JarError(RuntimeError):
    """A jar cannot be fetched, or differs from the locked one."""


@dataclass(frozen=True)
class Jar:
    """One locked jar, or an archive of them: its Maven coordinates and the checksum of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str | None = None
    extension: str = "jar"

    @property
    def coordinates(self) -> str:
        """Return what Maven calls this jar."""
        return f"{self.group}:{self.artifact}:{self.version}" + (f":{self.classifier}" if self.classifier else "")

    def path(self, cache: Path) -> Path:
        """Return the file of this jar in a cache."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return cache / self.group / f"{self.artifact}-{self.version}{suffix}.{self.extension}"


def jar_cache() -> Path:
    """Return the cache folder of jars."""
    return cache_folder() / "jars"


def read_lock(lock: Path) -> list[Jar]:
    """Read a lock file: one `group:artifact:version[:classifier][@zip] sha256=...` a line, `#` starts a comment."""
    jars = []
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), start=1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        match = _LINE.fullmatch(entry)
        if match is None:
            raise JarError(f"{lock}:{number}: expected `group:artifact:version sha256=<64 hex digits>`, found: {entry}")
        jars.append(Jar(**{name: value for name, value in match.groupdict().items() if value is not None}))
    return jars


def fetch(lock: Path, cache: Path, java: Path, progress: Callable[[str], object] = print) -> list[Path]:
    """Return the locked jars, in the lock's order, fetching those the cache lacks.

    Every jar enters the cache complete and verified, one by one, so an interrupted run continues where it stopped.

    lock: the lock file.
    cache: the folder jars are kept in.
    java: the java program that runs Ivy.
    progress: called with one line of text for every jar that arrives.
    """
    jars = read_lock(lock)
    missing = []
    for jar in jars:
        path = jar.path(cache)
        if not path.exists():
            missing.append(jar)
        elif (checksum := _sha256(path)) != jar.sha256:
            raise JarError(
                f"{path} is damaged: its sha256 is {checksum}, {lock.name} says {jar.sha256}. "
                "Delete it and run this again."
            )
    if missing:
        _fetch_missing(missing, lock, cache, java, progress)
    return [jar.path(cache) for jar in jars]


def _fetch_missing(jars: Sequence[Jar], lock: Path, cache: Path, java: Path, progress: Callable[[str], object]) -> None:
    ivy = _ivy_jar()
    cache.mkdir(parents=True, exist_ok=True)
    _sweep(cache)
    waiting = {jar.coordinates: jar for jar in jars}
    progress(f"{lock.name}: {len(jars)} jars to fetch")
    said = ""
    with tempfile.TemporaryDirectory(prefix=_INCOMING, dir=cache) as incoming:

        def attempt(locked: Sequence[Jar], options: Sequence[str] = ()) -> str:
            run = _Ivy([str(java), *options], ivy, Path(tempfile.mkdtemp(dir=incoming)))
            with contextlib.closing(run.resolve(locked)) as arrivals:
                for coordinates, arrived in arrivals:
                    jar = waiting.get(coordinates)
                    if jar is not None and arrived.is_file():
                        size = _keep(jar, arrived, cache, lock)
                        del waiting[coordinates]
                        progress(f"  {len(jars) - len(waiting)}/{len(jars)} {coordinates} ({size / 1e6:.1f} MB)")
            return run.said

        # One call for all is ten times faster than one each.
        said = attempt(jars)
        options: list[str] = []
        if waiting and "PKIX path building failed" in said:
            store = Path(incoming) / "authorities.jks"
            progress(
                f"  this Java does not trust the repository; trying the system's {write_truststore(store)} authorities"
            )
            options = [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]
            options.append("-Djavax.net.ssl.trustStoreType=JKS")
            said = attempt(list(waiting.values()), options)
        if waiting and len(jars) > 1 and "Server access error" not in said:
            for jar in list(waiting.values()):
                said = attempt([jar], options) or said
    if waiting:
        raise JarError(
            f"Cannot be fetched from the Maven repository: {', '.join(sorted(waiting))}. Ivy said:\n{said[-1500:]}\n"
            f"Run this again to fetch the missing ones. Behind a mirror, name an Ivy settings file in "
            f"{SETTINGS_VARIABLE}; for a proxy, set JAVA_TOOL_OPTIONS."
        )


def _sweep(cache: Path) -> None:
    """Remove folders of killed runs; those of the last hour may belong to a run that is still going on."""
    for folder in cache.glob(f"{_INCOMING}*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > 3600:
                shutil.rmtree(folder, ignore_errors=True)


def _keep(jar: Jar, arrived: Path, cache: Path, lock: Path) -> int:
    """Verify an arrived file and move it into the cache; return its size in bytes."""
    checksum = _sha256(arrived)
    if checksum != jar.sha256:
        raise JarError(
            f"{jar.path(cache).name} ({jar.coordinates}) has a wrong checksum: the repository delivered sha256 "
            f"{checksum}, {lock.name} says {jar.sha256}. It was discarded. Run this again; if it stays so, the "
            f"repository (or the mirror named in {SETTINGS_VARIABLE}) serves another file than the tested one."
        )
    target = jar.path(cache)
    target.parent.mkdir(exist_ok=True)
    # Ivy still reads its copy for its report, so it is linked or copied rather than moved.
    fresh = arrived.with_suffix(".verified")
    try:
        os.link(arrived, fresh)
    except OSError:
        shutil.copyfile(arrived, fresh)
    fresh.replace(target)
    return target.stat().st_size


class _Ivy:
    """Run Ivy once in its own folder, so that a half-filled Maven cache of the user does no harm."""

    def __init__(self, java: Sequence[str], ivy: Path, folder: Path) -> None:
        self._command = [*java, f"-Duser.home={folder}", "-jar", str(ivy)]
        self._folder = folder
        self.said = ""

    def resolve(self, jars: Sequence[Jar]) -> Generator[tuple[str, Path], None, None]:
        """Yield coordinates and file of every jar as it arrives."""
        module, settings = self._folder / "ivy.xml", self._folder / "settings.xml"
        module.write_text(_module(jars), encoding="utf-8")
        settings.write_text(_SETTINGS, encoding="utf-8")
        named = os.environ.get(SETTINGS_VARIABLE)
        ivy_cache = self._folder / "cache"
        command = [*self._command, "-settings", named or str(settings), "-cache", str(ivy_cache)]
        command += ["-ivy", str(module), "-confs", "default"]
        lines: list[str] = []
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if match := _ARRIVED.search(line):
                        group, artifact, version, classifier = match.group("group", "artifact", "version", "classifier")
                        arrived = Jar(group, artifact, version, "", classifier, match.group("extension"))
                        folder = ivy_cache / group / artifact / f"{classifier or 'jar'}s"
                        yield arrived.coordinates, folder / arrived.path(folder).name
                    elif line.strip(" .\n") and not line.startswith("."):
                        lines.append(line.rstrip())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
        self.said = _complaints(lines) if process.returncode else ""


def _complaints(lines: Sequence[str]) -> str:
    """Return the problems that Ivy reported, each once, without its tables and banners."""
    start = next((number for number, line in enumerate(lines) if "problems summary" in line), 0)
    summary = (line.strip() for line in lines[start:])
    complaints = [line for line in summary if line and not line.startswith((":", "=", "-", "|"))]
    return "\n".join(f"  {line}" for line in dict.fromkeys(complaints))


def _module(jars: Sequence[Jar]) -> str:
    artifacts: dict[tuple[str, str, str], str] = {}
    for jar in jars:
        classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
        kind = quoteattr(jar.classifier or "jar")  # names the folder of Ivy's cache
        artifact = f'<artifact name={quoteattr(jar.artifact)} type={kind} ext="{jar.extension}"{classifier}/>'
        module = (jar.group, jar.artifact, jar.version)
        artifacts[module] = artifacts.get(module, "") + artifact
    dependencies = "".join(
        f"<dependency org={quoteattr(group)} name={quoteattr(name)} rev={quoteattr(version)} "
        f'transitive="false">{mine}</dependency>\n'
        for (group, name, version), mine in artifacts.items()
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="airflow-provider-cdc" module="jars"/>'
        f"<dependencies>\n{dependencies}</dependencies></ivy-module>\n"
    )


def _ivy_jar() -> Path:
    """Return the Ivy that comes with Spark: from the installed pyspark, else from SPARK_HOME."""
    folders = []
    spec = importlib.util.find_spec("pyspark")
    if spec is not None:
        folders += [Path(folder) / "jars" for folder in spec.submodule_search_locations or []]
    if spark_home := os.environ.get("SPARK_HOME"):
        folders.append(Path(spark_home) / "jars")
    for folder in folders:
        for ivy in sorted(folder.glob("ivy-*.jar")):
            return ivy
    raise JarError(
        "Ivy, which fetches the jars, comes with Spark, and no Spark was found: "
        "pip install 'airflow-provider-cdc[spark]', or set SPARK_HOME."
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
