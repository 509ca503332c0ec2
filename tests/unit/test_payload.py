# SPDX-License-Identifier: Apache-2.0
"""The payload: the same bytes for the same content, nothing but what Spark needs, enough to start."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from airflow_provider_cdc.commands.output import exit_code
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, UnavailableError
from airflow_provider_cdc.engine.payload import archive, payload


def test_it_is_built_once_per_content(tmp_path: Path) -> None:
    first = payload(tmp_path)
    stamp = first.archive.stat().st_mtime_ns
    assert payload(tmp_path) == first
    assert first.archive.stat().st_mtime_ns == stamp


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    assert payload(tmp_path / "a").archive.read_bytes() == payload(tmp_path / "b").archive.read_bytes()
    files = {"b.py": b"2", "a.py": b"1"}
    assert archive(files) == archive(dict(reversed(files.items())))
    names = zipfile.ZipFile(io.BytesIO(archive(files))).namelist()
    assert names == ["a.py", "b.py"]


def test_it_holds_the_kernel_and_the_spark_side_and_nothing_else(tmp_path: Path) -> None:
    names = zipfile.ZipFile(payload(tmp_path).archive).namelist()
    assert {
        "airflow_provider_cdc/__init__.py",
        "spark_jobs/driver/run_batch.py",
        "airflow_provider_cdc/core/errors.py",
    } <= set(names)
    foreign = [
        name
        for name in names
        if name != "airflow_provider_cdc/__init__.py"
        and not name.startswith(("airflow_provider_cdc/core/", "spark_jobs/"))
    ]
    assert foreign == []
    assert [name for name in names if name.endswith(".pyc") or "__pycache__" in name] == []


def test_it_is_enough_to_start(tmp_path: Path) -> None:
    built = payload(tmp_path)
    for path in (built.archive, built.folder):
        code = "import airflow_provider_cdc.core.documents as d, spark_jobs.driver.run_batch; print(d.__file__)"
        run = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, cwd=tmp_path, capture_output=True, text=True
        )
        assert run.stdout.startswith(str(path)), run.stderr


# ---- the cache is private, whole, or refused


def test_files_that_are_missing_or_differ_are_written_again(tmp_path: Path) -> None:
    built = payload(tmp_path)
    whole = {
        path: path.read_bytes()
        for path in (built.archive, built.main, built.folder / "spark_jobs" / "driver" / "run_batch.py")
    }
    for harm in (Path.unlink, lambda path: path.write_bytes(b"print('evil')"), lambda path: path.write_bytes(b"")):
        for path in whole:
            harm(path)
            assert payload(tmp_path) == built
            assert {path: path.read_bytes() for path in whole} == whole


def test_the_cache_is_the_users_alone(tmp_path: Path) -> None:
    built = payload(tmp_path / "cache")
    for folder in (tmp_path / "cache", tmp_path / "cache" / "payload", built.folder.parent, built.folder):
        assert folder.stat().st_mode & 0o777 == 0o700, folder


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("level", range(4))
def test_a_cache_that_others_may_write_to_is_refused(tmp_path: Path, mode: int, level: int) -> None:
    cache = tmp_path / "cache"
    folder = payload(cache).folder
    refused_folder = [cache, cache / "payload", folder.parent, folder][level]
    refused_folder.chmod(mode)
    with pytest.raises(ConfigurationError, match="by others") as refused:
        payload(cache)
    assert refused.value.where == {"folder": str(refused_folder)} and "AIRFLOW_CDC_CACHE" in refused.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_cache_of_another_user_is_refused_and_a_file_of_his_is_replaced(tmp_path: Path) -> None:
    built = payload(tmp_path / "cache")
    os.chown(built.main, 1, 1)
    assert payload(tmp_path / "cache").main.stat().st_uid == 0
    os.chown(tmp_path / "cache" / "payload", 1, 1)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        payload(tmp_path / "cache")


def test_a_link_to_a_folder_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "payload").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="not a folder"):
        payload(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_reported_with_a_hint_and_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file" / "cache", Path("/proc/cache")):
        with pytest.raises(CdcError, match="cannot be written") as refused:
            payload(cache)
        assert "AIRFLOW_CDC_CACHE" in refused.value.hint and exit_code(refused.value) == 2


def test_a_full_disk_is_reported_with_a_code_and_ends_with_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UnavailableError, match="No space left") as refused:
        payload(tmp_path)
    assert refused.value.code == "cache.full" and exit_code(refused.value) == 5
    monkeypatch.undo()
    assert payload(tmp_path).archive.exists()
