"""The payload: the same bytes for the same content, nothing but what Spark needs, enough to start."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

from airflow_provider_cdc.payload import archive, payload


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
    assert {"airflow_provider_cdc/__init__.py", "spark_jobs/sync.py", "airflow_provider_cdc/core/errors.py"} <= set(
        names
    )
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
        code = "import airflow_provider_cdc.core.documents as d, spark_jobs.sync; print(d.__file__)"
        run = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, cwd=tmp_path, capture_output=True, text=True
        )
        assert run.stdout.startswith(str(path)), run.stderr
