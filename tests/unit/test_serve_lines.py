# SPDX-License-Identifier: Apache-2.0
"""Check what `airflow-cdc serve` prints of batches, and which files it serves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.cli import main
from airflow_provider_cdc.commands.serve import Lines, files
from airflow_provider_cdc.core.errors import UnavailableError, error_members

NOTHING = {"pipeline": "shop", "seq": 2, "status": "nothing_to_do", "records": 0, "seconds": 0.31}
DONE = {**NOTHING, "status": "done", "records": 12, "tables": [{"action": "merge"}, {"action": ""}]}
AWAY = UnavailableError("kafka.unavailable", "no broker answers", hint="airflow-cdc doctor PIPELINE.yaml")
FAILED: dict[str, Any] = {"status": "failed", **error_members(AWAY)}


def test_people_see_what_batches_did_and_each_failure_once(capsys: pytest.CaptureFixture[str]) -> None:
    take = Lines(as_json=False)
    for document in (NOTHING, DONE, FAILED, FAILED, NOTHING, NOTHING, FAILED):
        take("my shop.yaml", document)
    out, err = capsys.readouterr()
    assert [line.split(" ", 1)[1] for line in out.splitlines()] == [
        "shop: batch 2 done, 12 records, 1 tables (0.3 s)",
        "shop: nothing new (0.3 s)",
    ]
    assert err.count("kafka.unavailable") == 2 and "airflow-cdc doctor 'my shop.yaml'" in err


def test_machines_get_a_document_for_each_batch(capsys: pytest.CaptureFixture[str]) -> None:
    take = Lines(as_json=True)
    for document in (NOTHING, FAILED):
        take("shop.yaml", document)
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert documents == [{"file": "shop.yaml", **NOTHING}, {"file": "shop.yaml", **FAILED}]


def test_folders_are_served_as_their_yaml_files(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "notes.txt"):
        (tmp_path / name).touch()
    expected = [str(tmp_path / "a.yml"), str(tmp_path / "b.yaml")]
    assert files([str(tmp_path), expected[1], "c.yaml"]) == [*expected, "c.yaml"]


@pytest.mark.parametrize("options", [["--every", "0"], ["--every", "nan"], ["--jobs", "0"]])
def test_wrong_numbers_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "shop.yaml", *options])
    assert "number above zero" in capsys.readouterr().err


def test_a_folder_without_pipelines_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path)]) == 2
    assert "has no file named *.yaml" in capsys.readouterr().err
