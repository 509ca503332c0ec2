# SPDX-License-Identifier: Apache-2.0
"""Check what commands print of names that come from a log."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from airflow_provider_cdc.commands.output import complain, guarded, print_json, print_table
from airflow_provider_cdc.commands.show import tables
from airflow_provider_cdc.core.errors import REBUILD, ConfigurationError, SinkError
from airflow_provider_cdc.ledger import Ledger

NAME = "x\nshop.paid  ok\x1b[31m\x9b2J\u202e"
SHOWN = "x\\nshop.paid  ok\\u001b[31m\\u009b2J\\u202e"


def test_a_table_of_people_has_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("table", "state"), [(NAME, "parked")])
    assert capsys.readouterr().out.splitlines()[2:] == [f"{SHOWN}  parked"]


def test_json_for_machines_is_safe_on_a_terminal_and_keeps_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"table": NAME})
    (line,) = capsys.readouterr().out.splitlines()
    assert SHOWN in line and json.loads(line) == {"table": NAME}


@pytest.mark.parametrize("fails", [False, True])
def test_what_libraries_print_is_not_among_the_json(fails: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        print("2026-01-01 [warning  ] a library warns")
        if fails:
            raise ConfigurationError(["wrong"])
        print_json({"status": "done"})
        return 0

    assert guarded(work, Namespace(json=True)) == (2 if fails else 0)
    printed = capsys.readouterr()
    assert json.loads(printed.out)["status"] == ("failed" if fails else "done")
    assert "a library warns" in printed.err


@pytest.mark.parametrize("as_json", [False, True])
def test_what_to_do_names_the_file_of_the_pipeline(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise SinkError("sink.missing", "the table is gone", where={"table": "shop.a"}, hint=REBUILD)

    assert guarded(work, Namespace(pipeline="/opt/my shop.yaml", json=as_json)) == 3
    printed = capsys.readouterr()
    command = "`airflow-cdc rebuild '/opt/my shop.yaml' shop.a`"
    assert command in printed.err and (not as_json or command in json.loads(printed.out)["error"]["hint"])


def test_problems_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain(NAME)
    complain(ConfigurationError(["first", f"topic {NAME}"], where={"file": NAME}))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if not line.startswith(("airflow-cdc: ", "  "))] == []
    assert not any(character in line for line in lines for character in "\x1b\x9b\u202e")


def test_the_tables_of_a_pipeline_are_listed_safely(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = Ledger(url)
    state = {
        "table_id": "id", "database": "shop", "table": NAME, "state": "parked", "reason": f"names {NAME}",
        "applied_position": "", "applied_seq": 1, "schema": None, "source_time": None, "location": "/x", "version": 1,
        "notes": [],
    }  # fmt: skip
    with ledger.lease("shop", "me") as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 1}}, None)
        ledger.commit(lease, batch.seq, {"status": "done"}, {"id": state})
    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nledger: {url}\nsource: {{topics: t, format: dtle-json}}\nsink: {{root: /lake}}\n")
    listed = 3 + 4  # head, rule and row; an empty line, then what is wrong, what it means and what to do
    for as_json, history, lines in ((False, False, listed), (True, False, 1), (False, True, None), (True, True, 1)):
        assert tables(Namespace(pipeline=str(file), json=as_json, history=history)) == 0
        out = capsys.readouterr().out
        assert lines is None or len(out.splitlines()) == lines
        assert SHOWN in out
        assert not any(character in out for character in "\x1b\x9b\u202e")
