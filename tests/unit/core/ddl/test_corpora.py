# SPDX-License-Identifier: Apache-2.0
"""Test statements of other projects' tests and of real captures against their own expectations."""

from __future__ import annotations

import base64
import json
import lzma
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.ddl.alter_actions import (
    AddColumn,
    AddPrimaryKey,
    AddUnique,
    ChangeColumn,
    DropColumn,
    DropIndex,
    DropPrimaryKey,
    RenameColumn,
    RenameTo,
)
from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.ddl.statement import (
    AlterTable,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    RenameTable,
    Statement,
    TruncateTable,
)
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, Name
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

FIXTURES = Path(__file__).parents[5] / "shared" / "fixtures"
CAPTURES = ("public-a", "public-a-restart", "public-b", "public-c")

# Statements that no MySQL or MariaDB server accepts; the peers' parsers are more lenient.
NOT_MYSQL = {
    "CREATE DEFINER=sco*erce@%*": "backticks were lost, one is left without its partner",
    "truncate *, retl_test": "TRUNCATE takes one table",
    'create table "test"."test"': "no columns",
    "create database": "no name",
    "truncate table": "no name",
    "Alter table `NextTimeTable`*create table*": "two statements without a semicolon",
}
# Expectations that do not hold here, with the reason.
DIFFERENT = {
    "DROP /*!40005 TEMPORARY */ TABLE*": "a server runs the executable comment: a temporary table is dropped",
    "create index*": "a plain index is of no interest, so its table is not reported",
    "alter database*": "changes no table, so its name is not reported",
}


# Statements of Oracle's corpus that are not understood, with the reason.
ORACLE_REFUSED = {
    "TRUNCATE CLUSTER*": "does not name the tables that it empties",
}
# CREATE TABLEs whose columns, or what tells their rows apart, cannot be known
ORACLE_UNKNOWN = {
    "CREATE TABLE deptXTec3*": "no columns: they are an external file's",
    'CREATE TABLE "MASTERBILL"."ET$*': "columns without types: they are an external file's",
    'CREATE TABLE "ET$xxxx"*': "columns without types: they are an external file's",
    "CREATE TABLE CUSTOMER_TABLE*": "a NUMBER of any scale in a table without key",
    'CREATE TABLE "ZZZ"."TASKVOLUME"*': "a NUMBER of any scale in a table without key",
    'CREATE TABLE "ETUDES"."IMPORT_EXMETI"*': "a NUMBER of any scale in a table without key",
}


@cache
def corpus(name: str = "mysql") -> list[dict[str, Any]]:
    """Return the lines of a server's corpus, empty where it is absent."""
    path = FIXTURES / "ddl" / f"{name}_public.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def listed(table: dict[str, str], text: str) -> str | None:
    """Return the reason why a statement is in a table of exceptions."""
    return next((why for pattern, why in table.items() if fnmatchcase(text, pattern)), None)


def expecting(key: str) -> list[Any]:
    """Return the lines with one kind of expectation, as test parameters."""
    lines = [line for line in corpus() if key in (line["expect"] or {})]
    return [pytest.param(line, id=f"{number}") for number, line in enumerate(lines)] or [
        pytest.param(None, marks=pytest.mark.skip(reason="the DDL corpus is not next to this checkout"))
    ]


def texts(line: dict[str, Any]) -> list[str]:
    """Return all statements of a line, including those before it."""
    return [*(line.get("preceding") or ()), *(line.get("statements") or [line["sql"]])]


def test_every_statement_of_the_corpus_is_understood() -> None:
    if not corpus():
        pytest.skip("the DDL corpus is not next to this checkout")
    failed = {}
    for text in {text for line in corpus() for text in texts(line)}:
        try:
            understood = bool(parse(text))
        except DdlError as error:
            understood, failed[text] = False, str(error)
        assert understood == (listed(NOT_MYSQL, text) is None), failed.get(text, text)


def test_every_statement_of_oracles_corpus_is_understood() -> None:
    if not corpus("oracle"):
        pytest.skip("the DDL corpus is not next to this checkout")
    for text in {text for line in corpus("oracle") for text in texts(line)}:
        try:
            parse(text, "oracle")
        except DdlError as error:
            assert listed(ORACLE_REFUSED, text) is not None, (text, error)
            continue
        assert listed(ORACLE_REFUSED, text) is None, text
        tables = build_timeline([SchemaChange("1", 0, "S", text, dialect="oracle")]).tables.values()
        blocks = (block for table in tables if not table.supposed for block in table.blocked)
        unknown = [block for block in blocks if "from its text" not in block.reason]
        assert (not unknown) == (listed(ORACLE_UNKNOWN, text) is None), (text, unknown)


def test_sequences_of_oracle_end_in_the_columns_that_debezium_finds() -> None:
    lines = [line for line in corpus("oracle") if line["expect"]]
    if not lines:
        pytest.skip("the DDL corpus is not next to this checkout")
    for line in lines:
        tables = Tables()
        for text in texts(line):
            for statement in parse(text, "oracle"):
                tables.run(statement)
        actual = {name: [column.name for column in columns] for name, columns in tables.columns.items()}
        expected = {name: table["columns"] for name, table in line["expect"].get("tables", {}).items()}
        assert actual == expected


# -- final tables ------------------------------------------------------------------------------------------------------


class Tables:
    """Apply a sequence of statements in the simplest way."""

    def __init__(self) -> None:
        self.columns: dict[str, list[ColumnDefinition]] = {}
        self.key: dict[str, tuple[str, ...]] = {}
        self.unique: dict[str, dict[str, tuple[str, ...]]] = {}

    def run(self, statement: Statement) -> None:
        """Carry out one statement."""
        match statement:
            case CreateTable(name=name, like=Name(table=like)):
                self.columns[name.table] = list(self.columns[like])
                self.key[name.table] = self.key[like]
                self.unique[name.table] = dict(self.unique[like])
            case CreateTable(name=name):
                self.columns[name.table] = list(statement.columns)
                self.key[name.table] = statement.key
                self.unique[name.table] = {unique.index: unique.columns for unique in statement.unique}
            case DropTable():
                for name in statement.names:
                    self.columns.pop(name.table, None)
            case RenameTable():
                for old, new in statement.pairs:
                    for part in (self.columns, self.key, self.unique):
                        part[new.table] = part.pop(old.table)  # type: ignore[attr-defined]
            case AlterTable():
                for action in statement.actions:
                    self.alter(statement.name.table, action)

    def alter(self, table: str, action: object) -> None:
        """Apply one clause."""
        match action:
            case AddColumn(definition=definition):
                self.insert(table, definition, action.first, action.after)
            case ChangeColumn(old_name=old, definition=definition):
                ordinal = [column.name for column in self.columns[table]].index(old)
                del self.columns[table][ordinal]
                rename = {old: definition.name}
                self.key[table] = tuple(rename.get(name, name) for name in self.key[table])
                for index, names in self.unique[table].items():
                    self.unique[table][index] = tuple(rename.get(name, name) for name in names)
                self.insert(table, definition, action.first, action.after, ordinal)
            case DropColumn(name=name):
                self.columns[table] = [column for column in self.columns[table] if column.name != name]
                self.key[table] = tuple(column for column in self.key[table] if column != name)
                left = {i: tuple(n for n in names if n != name) for i, names in self.unique[table].items()}
                self.unique[table] = {index: names for index, names in left.items() if names}
            case AddPrimaryKey(columns=columns):
                self.key[table] = columns
            case DropPrimaryKey():
                self.key[table] = ()
            case AddUnique(index=index, columns=columns):
                suffix = 2
                while index in self.unique[table]:
                    index, suffix = f"{action.index}_{suffix}", suffix + 1
                self.unique[table][index] = columns
            case DropIndex(index=index):
                self.unique[table].pop(index, None)

    def insert(
        self, table: str, definition: ColumnDefinition, first: bool, after: str | None, index: int | None = None
    ) -> None:
        """Insert a column at its position."""
        columns = self.columns[table]
        if first:
            index = 0
        elif after is not None:
            index = 1 + [column.name for column in columns].index(after)
        columns.insert(len(columns) if index is None else index, definition)


def same_type(actual: ColumnType, expected: ColumnType) -> bool:
    """Return whether two types are equal, apart from a display width that was not declared."""
    if actual.name in ("tinyint", "smallint", "mediumint", "int", "bigint") and actual.length is None:
        return (actual.name, actual.unsigned) == (expected.name, expected.unsigned)
    length = actual.length or None if actual.name in ("datetime", "timestamp", "time") else actual.length
    left = (actual.name, length, actual.scale, actual.unsigned, actual.labels)
    return left == (expected.name, expected.length, expected.scale, expected.unsigned, expected.labels)


@pytest.mark.parametrize("line", expecting("tables_after"))
def test_sequences_end_in_the_tables_that_mysql_shows(line: dict[str, Any]) -> None:
    tables = Tables()
    for text in texts(line):
        for statement in parse(text):
            tables.run(statement)
    for name, expected in line["expect"]["tables_after"].items():
        assert [column.name for column in tables.columns[name]] == [column["name"] for column in expected["columns"]]
        for column, shown in zip(tables.columns[name], expected["columns"], strict=True):
            (create,) = parse(f"CREATE TABLE t (c {shown['type']})")
            assert isinstance(create, CreateTable)
            assert same_type(column.type, create.columns[0].type), (name, column.name)
            if column.nullable is False or column.name in tables.key[name]:
                assert not shown["nullable"]
        assert list(tables.key[name]) == expected["primary_key"]
        assert sorted(map(list, tables.unique[name].values())) == sorted(expected["unique_keys"])


# -- names and clauses -------------------------------------------------------------------------------------------------


def names(statement: Statement) -> list[Name]:
    """Return the tables that a statement names, in order; a rename names old and new."""
    match statement:
        case CreateTable(name=name, like=None) | TruncateTable(name=name):
            return [name]
        case CreateTable(name=name, like=Name() as like):
            return [name, like]
        case DropTable():
            return list(statement.names)
        case RenameTable():
            return [name for pair in statement.pairs for name in pair]
        case CreateDatabase(database=database) | DropDatabase(database=database):
            return [Name(database, "")]
        case AlterTable():
            renamed = [action.name for action in statement.actions if isinstance(action, RenameTo)]
            return [statement.name, *renamed]
    return []


def full(name: Name, line: dict[str, Any]) -> list[str]:
    """Return database and table, unqualified names in the session's database."""
    return [name.database or line["default_db"] or "", name.table]


@pytest.mark.parametrize("line", expecting("tables"))
def test_statements_name_the_tables_that_tiflow_finds(line: dict[str, Any]) -> None:
    if why := listed(DIFFERENT, line["sql"]):
        pytest.skip(why)
    actual = [full(name, line) for statement in parse(line["sql"]) for name in names(statement)]
    expected = line["expect"]["tables"]
    if line["sql"].startswith("alter"):  # tiflow splits an ALTER into its clauses and repeats the name
        expected = [name for index, name in enumerate(expected) if name not in expected[:index]]
    assert actual == expected


@pytest.mark.parametrize("line", expecting("table"))
def test_statements_name_the_table_that_canal_or_gh_ost_finds(line: dict[str, Any]) -> None:
    if why := listed(DIFFERENT, line["sql"]) or listed(NOT_MYSQL, line["sql"]):
        pytest.skip(why)
    expected = line["expect"]
    actual = names(parse(line["sql"])[0])
    if "old_table" in expected:
        assert full(actual.pop(0), line) == [expected["old_schema"], expected["old_table"]]
    assert actual[0].table == expected["table"]
    if expected.get("schema"):
        assert full(actual[0], line)[0] == expected["schema"]


def changes(statement: Statement) -> list[dict[str, Any]]:
    """Return an ALTER TABLE in the words of Flink CDC; whether a CHANGE alters the type depends on the type before."""
    result: list[dict[str, Any]] = []
    for action in statement.actions if isinstance(statement, AlterTable) else ():
        match action:
            case AddColumn(definition=definition):
                added: dict[str, Any] = {"add": [definition.name, str(definition.type).upper()]}
                result.append({**added, "position": ["AFTER", action.after]} if action.after else added)
            case DropColumn(name=name):
                result.append({"drop": [name]})
            case RenameColumn():
                result.append({"rename": [action.old_name, action.new_name]})
            case ChangeColumn(definition=definition):
                if action.old_name != definition.name:
                    result.append({"rename": [action.old_name, definition.name]})
                result.append({"alter_type": [definition.name, str(definition.type).upper()]})
    return result


@pytest.mark.parametrize("line", expecting("schema_changes"))
def test_clauses_are_the_changes_that_flink_cdc_finds(line: dict[str, Any]) -> None:
    actual = changes(parse(line["sql"])[0])
    expected = line["expect"]["schema_changes"]
    comparable = [change for change in actual if "alter_type" not in change or change in expected]
    assert comparable == expected


@pytest.mark.parametrize("line", expecting("maxwell_ddl_message"))
def test_created_tables_are_those_that_maxwell_finds(line: dict[str, Any]) -> None:
    message = line["expect"]["maxwell_ddl_message"]
    (statement,) = parse(line["sql"])
    if not isinstance(statement, CreateTable):
        assert message["type"] != "table-create"
        return
    assert [statement.name.database, statement.name.table] == [message["database"], message["table"]]
    if statement.like is None:
        shown = [(column["name"], column["type"]) for column in message["def"]["columns"]]
        assert [(column.name, column.type.name) for column in statement.columns] == shown
        assert list(statement.key) == message["def"]["primary-key"]


# -- real captures -----------------------------------------------------------------------------------------------------


def schema_changes(capture: str) -> list[dict[str, Any]]:
    """Return the schema-change records of a Debezium capture."""
    path = FIXTURES / "debezium" / capture / "records.jsonl.xz"
    if not path.exists():
        pytest.skip("the Debezium captures are not next to this checkout")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    values = [json.loads(base64.b64decode(r["value"])) for r in records if r["topic"] == capture.replace("-", "_")]
    return [value.get("payload", value) for value in values]


def defined(statements: list[Statement]) -> list[ColumnDefinition]:
    """Return the columns that statements define and that are still there at their end."""
    by_name: dict[str, ColumnDefinition] = {}
    for statement in statements:
        if isinstance(statement, CreateTable):
            by_name.update((column.name, column) for column in statement.columns)
        for action in statement.actions if isinstance(statement, AlterTable) else ():
            if isinstance(action, AddColumn | ChangeColumn) and not getattr(action, "if_not_exists", False):
                by_name[action.definition.name] = action.definition
            elif isinstance(action, RenameColumn | DropColumn):
                by_name.pop(action.old_name if isinstance(action, RenameColumn) else action.name, None)
    return list(by_name.values())


def debezium_type(shown: dict[str, Any]) -> ColumnType:
    """Return the type as Debezium's own parser reports it."""
    words = shown["typeExpression"].lower()
    argument = "" if shown["length"] is None else f"({shown['length']}"
    argument += f",{shown['scale']})" if argument and shown["scale"] is not None else ")" if argument else ""
    name, _, attributes = words.partition(" ")
    if name in ("enum", "set"):
        argument = "(" + ",".join(shown["enumValues"]) + ")"
    (create,) = parse(f"CREATE TABLE t (c {name}{argument} {attributes})")
    assert isinstance(create, CreateTable)
    return create.columns[0].type


@pytest.mark.parametrize("capture", CAPTURES)
def test_columns_are_those_of_debezium(capture: str) -> None:
    compared = 0
    for payload in schema_changes(capture):
        statements = parse(payload["ddl"])
        assert statements
        (table, *more) = [change["table"] for change in payload["tableChanges"] if change["table"]] or [None]
        if table is None or more:
            continue
        shown = {column["name"]: column for column in table["columns"]}
        for column in defined(statements):
            assert same_type(column.type, debezium_type(shown[column.name])), (payload["ddl"], shown[column.name])
            compared += 1
    assert compared > 100
