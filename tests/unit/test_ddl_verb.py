# SPDX-License-Identifier: Apache-2.0
"""The verb ``ddl``: what statements change, in fixed forms that other tools read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.cli import main


def run(capsys: pytest.CaptureFixture[str], folder: Path, lines: list[Any], *options: str) -> list[dict[str, Any]]:
    """Return the lines that the verb prints for some lines."""
    file = folder / "statements.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    code = main(["ddl", "--dialect", "mysql", *options, str(file)])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def column(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": None, "default": None, "position": None, **more}


def test_a_create_table_states_columns_and_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = (
        "CREATE TABLE shop.t(id INT UNSIGNED NOT NULL, v VARCHAR(9) DEFAULT 'x', at DATETIME(3) NULL, PRIMARY KEY(id))"
    )
    (line,) = run(capsys, tmp_path, [{"sql": sql}])
    columns = [
        column("id", "int unsigned", nullable=False),
        column("v", "varchar(9)", default="x"),
        column("at", "datetime(3)", nullable=True),
    ]
    assert line == {
        "changes": [{"type": "create_table", "database": "shop", "table": "t", "columns": columns, "key": ["id"]}]
    }


def test_every_clause_of_an_alter_is_a_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = (
        "ALTER TABLE t ADD COLUMN a INT FIRST, ADD b INT AFTER a, DROP COLUMN c, CHANGE d e BIGINT, MODIFY f TEXT, "
        "RENAME COLUMN g TO h, ADD UNIQUE KEY u (a, b), DROP PRIMARY KEY, ADD PRIMARY KEY (a), RENAME TO other.t2"
    )
    (line,) = run(capsys, tmp_path, [{"sql": sql, "default_db": "shop"}])
    table = {"database": "shop", "table": "t"}
    assert line["changes"] == [
        {"type": "add_column", **table, "columns": [column("a", "int", position="FIRST")]},
        {"type": "add_column", **table, "columns": [column("b", "int", position="AFTER a")]},
        {"type": "drop_column", **table, "old_name": "c"},
        {"type": "change_column", **table, "columns": [column("e", "bigint")], "old_name": "d", "new_name": "e"},
        {"type": "modify_column", **table, "columns": [column("f", "text")], "old_name": "f", "new_name": "f"},
        {"type": "rename_column", **table, "old_name": "g", "new_name": "h"},
        {"type": "add_unique", **table, "key": ["a", "b"]},
        {"type": "drop_primary_key", **table},
        {"type": "add_primary_key", **table, "key": ["a"]},
        {"type": "rename_table", **table, "old_table": "shop.t", "new_table": "other.t2"},
    ]


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("DROP TABLE a, x.b", [("drop_table", "shop", "a"), ("drop_table", "x", "b")]),
        ("TRUNCATE a", [("truncate_table", "shop", "a")]),
        ("RENAME TABLE a TO b, c TO a", [("rename_table", "shop", "a"), ("rename_table", "shop", "c")]),
        ("ALTER TABLE a TRUNCATE PARTITION p0", [("truncate_partition", "shop", "a")]),
        ("ALTER TABLE a ENGINE=InnoDB", [("no_effect", "shop", "a")]),
        ("CREATE DATABASE d", [("create_database", "d", None)]),
        ("USE d; DROP TABLE a", [("use_database", "d", None), ("drop_table", "d", "a")]),
        ("CREATE VIEW v AS SELECT 1", []),
    ],
)
def test_statements_name_their_tables(
    sql: str, changes: list[tuple[str, str, str | None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = run(capsys, tmp_path, [{"sql": sql}], "--database", "shop")
    assert [(change["type"], change["database"], change.get("table")) for change in line["changes"]] == changes


def test_what_is_not_understood_is_reported_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(
        capsys, tmp_path, [{"sql": "ALTER TABLE t\n FROBNICATE c"}, {"sql": "DROP TABLE t"}, "no JSON", {"a": 1}]
    )
    assert lines[0]["unparsed"].startswith("line 2, column 2: ")
    assert lines[1]["changes"][0]["type"] == "drop_table"
    assert [line["unparsed"] for line in lines[2:]] == [
        "the line is not JSON",
        "the line is not a JSON object with a text in sql",
    ]


def test_replay_prints_the_tables_after_all_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(
        capsys,
        tmp_path,
        [
            {"sql": "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "default_db": "shop"},
            {"sql": "RENAME TABLE t TO u", "preceding": ["USE shop", "CREATE TABLE gone (x INT)", "DROP TABLE gone"]},
            {"sql": "ALTER TABLE shop.u ADD w TEXT AFTER id, FROBNICATE"},
            {"sql": "ALTER TABLE shop.u ADD n DECIMAL(9,2) NOT NULL DEFAULT 0.5 AFTER id"},
        ],
        "--replay",
    )
    (table,) = lines[-1]["tables"]
    assert len(lines) == 5 and (table["database"], table["table"], table["key"]) == ("shop", "u", ["id"])
    assert [(c["name"], c["type"]) for c in table["columns"]] == [("id", "int"), ("n", "decimal(9,2)"), ("v", "int")]
    assert "FROBNICATE" in table["unknown"]  # the third statement is not understood


def test_oracles_statements_are_read_in_their_own_dialect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, tmp_path, [{"sql": 'ALTER TABLE "S"."T" MODIFY ("V" VARCHAR2(30))'}], "--dialect", "oracle")
    (change,) = lines[0]["changes"]
    assert (change["type"], change["database"], change["table"]) == ("modify_column", "S", "T")
    assert change["columns"][0]["name"] == "V"


def test_a_missing_file_is_a_configuration_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ddl", "--dialect", "mysql", "missing.jsonl"]) == 2
    assert "cannot read missing.jsonl" in capsys.readouterr().err
