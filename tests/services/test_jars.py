# SPDX-License-Identifier: Apache-2.0
"""Locked jars arrive complete and verified, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.engine import jars
from airflow_provider_cdc.engine.jars import JarError, fetch, jar_cache, lock_of, read_lock, spark_line
from airflow_provider_cdc.engine.jars.__main__ import main
from airflow_provider_cdc.engine.jars.signatures import PASSWORD, write_truststore
from airflow_provider_cdc.engine.java import JavaHome, JavaNotFound, find_java
from tests.services.broker import LOCK

SMALL = "org.jspecify:jspecify:1.0.0 sha256=1fad6e6be7557781e4d33729d49ae1cdc8fdda6fe477bb0cc68ce351eafdfbab\n"


def lock_file(folder: Path, text: str) -> Path:
    path = folder / "some.lock"
    path.write_text(text)
    return path


def test_locks_name_every_jar_once() -> None:
    locks = sorted(Path(jars.__file__).parent.glob("*.lock"))
    assert [lock.stem for lock in locks] == ["s3a-4.1", "spark-3.5", "spark-4.0", "spark-4.1", "spark-4.2"]
    for lock in (*locks, LOCK):
        named = read_lock(lock)
        assert len({jar.coordinates for jar in named}) == len(named) >= 6
        scala = {match[1] for jar in named if (match := re.search(r"_(2\.\d+)$", jar.artifact))}
        assert len(scala) <= 1, "jars of two Scalas do not work together"


def test_jars_follow_the_line_of_spark(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    assert spark_line(tmp_path) is None
    (tmp_path / "jars" / "spark-core_2.12-3.5.8.jar").touch()
    assert spark_line(tmp_path) == "3.5"
    assert lock_of("spark", "3.5").name == "spark-3.5.lock"
    for name, line in (("spark", "4.3"), ("s3a", "3.5"), ("spark", None)):
        with pytest.raises(ConfigurationError, match=r"known: .*4\.1") as refused:
            lock_of(name, line)
        assert "spark.jars.packages" in refused.value.hint


def test_a_line_that_is_no_coordinate_is_named(tmp_path: Path) -> None:
    with pytest.raises(JarError, match=r"some\.lock:2: expected"):
        read_lock(lock_file(tmp_path, f"{SMALL}org.jspecify:jspecify\n"))


def test_a_jar_is_fetched_once(tmp_path: Path, java: JavaHome) -> None:
    said: list[str] = []
    lock = lock_file(tmp_path, SMALL)
    (jar,) = fetch(lock, tmp_path / "cache", java.executable, said.append)
    assert hashlib.sha256(jar.read_bytes()).hexdigest() in SMALL
    assert any("1/1 org.jspecify:jspecify:1.0.0" in line for line in said)
    said.clear()
    assert fetch(lock, tmp_path / "cache", Path("never-called"), said.append) == [jar]
    assert said == []
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["org.jspecify"]


def test_a_wrong_checksum_keeps_the_jar_out(tmp_path: Path, java: JavaHome) -> None:
    lock = lock_file(tmp_path, SMALL.replace("1fad", "ffff"))
    with pytest.raises(JarError, match=r"jspecify-1\.0\.0\.jar .* wrong checksum.*discarded") as failure:
        fetch(lock, tmp_path / "cache", java.executable, lambda text: None)
    assert "Run this again" in str(failure.value)
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_a_damaged_jar_in_the_cache_is_named(tmp_path: Path, java: JavaHome) -> None:
    lock = lock_file(tmp_path, SMALL)
    (jar,) = fetch(lock, tmp_path / "cache", java.executable, lambda text: None)
    jar.write_bytes(jar.read_bytes()[:-1])
    with pytest.raises(JarError, match=r"is damaged.*Delete it and run this again"):
        fetch(lock, tmp_path / "cache", java.executable, lambda text: None)


def test_one_missing_jar_does_not_keep_the_others_away(tmp_path: Path, java: JavaHome) -> None:
    nothing = "org.jspecify:no-such-artifact:9.9.9 sha256=" + "0" * 64
    lock = lock_file(tmp_path, f"{nothing}\n{SMALL}")
    with pytest.raises(JarError, match=r"org\.jspecify:no-such-artifact:9\.9\.9") as failure:
        fetch(lock, tmp_path / "cache", java.executable, lambda text: None)
    assert "jspecify:jspecify" not in str(failure.value).partition("Ivy said")[0]
    assert (tmp_path / "cache" / "org.jspecify" / "jspecify-1.0.0.jar").is_file()


def test_the_command_prints_the_paths_spark_wants(java: JavaHome, capsys: pytest.CaptureFixture[str]) -> None:
    lock = lock_of("spark", "4.1")
    spark_jars = fetch(lock, jar_cache(), java.executable)
    assert main([str(lock)]) == 0
    assert capsys.readouterr().out == ",".join(map(str, spark_jars)) + "\n"
    assert main([str(lock), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [str(jar) for jar in spark_jars]


def test_the_systems_authorities_can_be_read_by_a_java(tmp_path: Path, java: JavaHome) -> None:
    count = write_truststore(tmp_path / "authorities.jks")
    keytool = java.home / "bin" / "keytool"
    if not keytool.exists():
        pytest.skip("this Java has no keytool")
    run = subprocess.run(
        [keytool, "-list", "-keystore", tmp_path / "authorities.jks", "-storepass", PASSWORD, "-storetype", "JKS"],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert run.returncode == 0, run.stdout
    assert run.stdout.count("trustedCertEntry") == count


def fake_java(folder: Path, version: str, knows_module: bool) -> Path:
    """Return a program that answers what this project asks a Java."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "" if knows_module else 'case "$1" in --add-modules=*) exit 1;; esac\n'
    program.write_text(
        f'#!/bin/sh\n{refuse}[ "$1" = run ] && {{ echo "$@"; exit; }}\n'
        f"echo {shlex.quote(f'    java.home = {folder}')} >&2\necho '    java.specification.version = {version}' >&2\n"
    )
    program.chmod(0o755)
    return program


def test_a_java_spark_can_run_on_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "21", knows_module=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java(tmp_path / "cache") == JavaHome(tmp_path, 21, "JAVA_HOME")


def test_a_java_without_the_vector_module_is_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fake_java(tmp_path / "it's real", "17", knows_module=False)
    monkeypatch.setenv("JAVA_HOME", str(real.parents[1]))
    java = find_java(tmp_path / "cache")
    assert (java.version, java.origin) == (17, "JAVA_HOME")
    assert java.home.is_relative_to(tmp_path / "cache")
    run = subprocess.run(
        [java.executable, "--add-modules=jdk.incubator.vector", "run", "a b", ""], capture_output=True, text=True
    )
    assert run.stdout == "run a b \n"
    assert find_java(tmp_path / "cache") == java


def test_an_old_java_is_passed_over_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "1.8", knows_module=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME is Java 8.*airflow-provider-cdc\[java]"):
        find_java(tmp_path / "cache")
