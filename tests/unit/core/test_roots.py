# SPDX-License-Identifier: Apache-2.0
"""A root of a lake is one place however it is spelled, and states name places below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import DeltaSink
from airflow_provider_cdc.core.lake.roots import canonical_root, is_same_root


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("/data/lake", "/data/lake"),
        ("/data/lake/", "/data/lake"),
        ("//data///lake//", "/data/lake"),
        ("/data/./lake/.", "/data/lake"),
        ("file:///data/lake", "/data/lake"),
        ("FILE:///data/lake/", "/data/lake"),
        ("file:////data/lake", "/data/lake"),
        ("file://localhost/data/lake", "/data/lake"),
        ("s3://bucket/lake", "s3://bucket/lake"),
        ("s3a://bucket/lake/", "s3://bucket/lake"),
        ("S3A://bucket//lake", "s3://bucket/lake"),
        ("s3://bucket", "s3://bucket"),
    ],
)
def test_spellings_of_a_root_are_one(spelled: str, canonical: str) -> None:
    assert canonical_root(spelled) == canonical
    assert DeltaSink(spelled).root == canonical


def test_a_relative_root_is_below_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert canonical_root("lake") == str(tmp_path / "lake")


def test_a_symlink_and_dots_are_the_same_place_and_a_copy_is_not(tmp_path: Path) -> None:
    for name in ("lake", "copy"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    lake = str(tmp_path / "lake")
    for other in ("link", "link/", "copy/../lake"):
        assert is_same_root(lake, f"{tmp_path}/{other}")
        assert is_same_root(f"{tmp_path}/{other}", lake)
    assert not is_same_root(lake, str(tmp_path / "copy"))
    assert not is_same_root(lake, "s3://bucket/lake")
