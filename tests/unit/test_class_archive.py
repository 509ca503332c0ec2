# SPDX-License-Identifier: Apache-2.0
"""The kept classes of Spark: made by the second batch on a machine, used by all later ones."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pyspark
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.engine.class_archive import ClassArchive, class_archive
from airflow_provider_cdc.engine.java import JavaHome


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path]:
    """Homes of a Java and a Spark, with what is looked at."""
    java, spark = tmp_path / "java", tmp_path / "spark"
    (java / "lib" / "server").mkdir(parents=True)
    (java / "lib" / "server" / "classes.jsa").touch()
    (java / "release").write_text('JAVA_VERSION="17.0.1"')
    (spark / "jars").mkdir(parents=True)
    return java, spark


def _start(homes: tuple[Path, Path], folder: Path, session: bool = False) -> ClassArchive:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    result = class_archive(*homes, homes[1] / "conf", session, folder / "cache", scratch)
    assert result is not None
    return result


def test_the_second_start_makes_the_archive_and_later_ones_use_it(homes: tuple[Path, Path], tmp_path: Path) -> None:
    assert _start(homes, tmp_path).options == ""
    second = _start(homes, tmp_path)
    assert second.output is not None and f"-XX:ArchiveClassesAtExit={second.output}" in second.options
    second.output.write_bytes(b"classes")
    second.ended(well=True)
    third = _start(homes, tmp_path)
    assert third.output is None and third.stored.read_bytes() == b"classes"
    assert f"-XX:SharedArchiveFile={third.stored}" in third.options


def test_a_start_that_was_cut_short_leaves_the_next_one_to_make_it(homes: tuple[Path, Path], tmp_path: Path) -> None:
    _start(homes, tmp_path)
    _start(homes, tmp_path).ended(well=True)  # the JVM wrote nothing
    assert _start(homes, tmp_path).output is not None


def test_another_java_and_a_session_have_archives_of_their_own(homes: tuple[Path, Path], tmp_path: Path) -> None:
    first = _start(homes, tmp_path)
    (homes[0] / "release").write_text('JAVA_VERSION="17.0.2"')
    assert len({first.stored, _start(homes, tmp_path).stored, _start(homes, tmp_path, session=True).stored}) == 3


def test_a_java_without_an_archive_of_its_own_makes_none(homes: tuple[Path, Path], tmp_path: Path) -> None:
    (homes[0] / "lib" / "server" / "classes.jsa").unlink()
    assert class_archive(*homes, homes[1] / "conf", False, tmp_path, tmp_path) is None


def test_an_archive_that_a_jvm_died_of_is_gone_and_made_again(homes: tuple[Path, Path], tmp_path: Path) -> None:
    """As of a file cut short; one that was being made then may be cut short too."""
    _start(homes, tmp_path)
    for well in (False, True):
        making = _start(homes, tmp_path)
        making = making if making.output is not None else _start(homes, tmp_path)
        assert making.output is not None
        making.output.write_bytes(b"classes")
        making.ended(well=well)
        assert making.stored.exists() is well
    _start(homes, tmp_path).ended(well=False)
    assert not making.stored.exists()
    assert [_start(homes, tmp_path).output is not None for _ in range(2)] == [False, True]


def test_what_cannot_be_made_is_not_tried_for_ever(homes: tuple[Path, Path], tmp_path: Path) -> None:
    made = [_start(homes, tmp_path).output is not None for _ in range(6)]
    assert made == [False, True, True, True, False, False]


def test_the_archives_that_were_used_last_are_kept(homes: tuple[Path, Path], tmp_path: Path) -> None:
    """Each environment that ever ran a batch here left 60 to 200 MB behind."""

    def start(release: int) -> ClassArchive:
        (homes[0] / "release").write_text(f'JAVA_VERSION="17.0.{release}"')
        return _start(homes, tmp_path)

    def make(release: int) -> Path:
        start(release)
        making = start(release)
        assert making.output is not None
        making.output.write_bytes(b"classes")
        making.ended(well=True)
        return making.stored

    stored = [make(release) for release in range(4)]
    for age, file in enumerate(reversed(stored)):
        os.utime(file, (1_000 - age, 1_000 - age))
    assert "SharedArchiveFile" in start(0).options
    stored.append(make(4))
    left = {file.name for file in (tmp_path / "cache" / "classes").iterdir()}
    assert left == {stored[n].with_suffix(suffix).name for n in (0, 2, 3, 4) for suffix in (".jsa", ".seen")}


def test_a_configuration_next_to_the_jars_makes_none(homes: tuple[Path, Path], tmp_path: Path) -> None:
    conf = homes[1] / "conf"
    conf.mkdir()
    assert class_archive(*homes, conf, False, tmp_path, tmp_path) is not None
    (conf / "spark-defaults.conf").touch()
    assert class_archive(*homes, conf, False, tmp_path, tmp_path) is None


def test_a_folder_with_spaces_stays_one_argument(homes: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "my own files"
    folder.mkdir()
    _start(homes, folder)
    made = _start(homes, folder)
    assert shlex.split(made.options)[0] == f"-XX:ArchiveClassesAtExit={made.output}"


def test_an_archive_that_others_can_have_written_is_not_used(homes: tuple[Path, Path], tmp_path: Path) -> None:
    """The JVM runs the classes that are in it."""
    stored = _start(homes, tmp_path).stored
    stored.write_bytes(b"classes")
    stored.chmod(0o666)
    assert "SharedArchiveFile" not in _start(homes, tmp_path).options
    assert not stored.exists()
    stored.parent.chmod(0o777)
    with pytest.raises(ConfigurationError, match="by others"):
        _start(homes, tmp_path)


def test_java_takes_classes_from_the_archive_it_made(java: JavaHome, tmp_path: Path) -> None:
    """With the real Java, and the shortest thing that Spark can be asked."""
    homes = java.home, Path(pyspark.__file__).parent
    if class_archive(*homes, homes[1] / "conf", False, tmp_path / "cache", tmp_path) is None:
        pytest.skip(f"{java.home} has no archive of its own classes, to which Spark's could be added")
    making = _start(homes, tmp_path)
    assert "shared objects file" not in _origins_of_spark(java.executable, making, homes[1])
    making.ended(well=True)
    assert "shared objects file" in _origins_of_spark(java.executable, _start(homes, tmp_path), homes[1])


def _origins_of_spark(java: Path, archive: ClassArchive, spark: Path) -> str:
    """Ask Spark for its version; return where Java took the main class from."""
    options = [*shlex.split(archive.options), "-Xlog:class+load=info", "-cp", f"{spark}/jars/*"]
    asked = [str(java), *options, "org.apache.spark.deploy.SparkSubmit", "--version"]
    reported = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return next(line for line in reported.splitlines() if "org.apache.spark.deploy.SparkSubmit " in line)
