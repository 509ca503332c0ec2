# SPDX-License-Identifier: Apache-2.0
"""The event triggers on a real server: what each DDL writes into the log, and that none of them stops a DDL."""

from __future__ import annotations

import builtins
import json
import threading
import time
from typing import Any

import psycopg
import pytest

from airflow_provider_cdc.cli import main
from airflow_provider_cdc.sources.ddl_triggers import uninstall_sql
from tests.postgres.database import LOG, Connection, install
from tests.services.postgres import sql


def rows(database: Connection, since: int = 0) -> list[dict[str, Any]]:
    """Return the rows of the log behind a number of them."""
    with database.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute("SELECT * FROM ctl.ddl_log ORDER BY id OFFSET %s", [since]).fetchall()


def logged(database: Connection, *statements: str) -> list[dict[str, Any]]:
    """Return what statements write into the log."""
    before = len(rows(database))
    for statement in statements:
        database.execute(sql(statement))
    return rows(database, before)


def names(row: dict[str, Any]) -> list[tuple[int, str]]:
    return [(column["attnum"], column["name"]) for column in row["columns"]]


def test_what_is_there_already_is_described(database: Connection) -> None:
    database.execute('CREATE TABLE app."Old One" (b int, a numeric(6,2) DEFAULT 1.5, PRIMARY KEY (a, b))')
    install(database)
    (row,) = rows(database)
    assert (row["event"], row["object"], row["schema_name"], row["table_name"]) == (
        "install",
        'app."Old One"',
        "app",
        "Old One",
    )
    assert names(row) == [(1, "b"), (2, "a")]
    assert row["key"] == [2, 1]
    assert [column["type"] for column in row["columns"]] == ["integer", "numeric(6,2)"]
    assert (row["relkind"], row["replica_identity"], row["error"]) == ("r", "d", None)
    assert row["system_identifier"].isdigit()


def test_a_second_installation_describes_again_and_doubles_no_trigger(database: Connection) -> None:
    database.execute("CREATE TABLE app.t (id int PRIMARY KEY)")
    install(database)
    install(database)
    assert [row["event"] for row in rows(database)] == ["install", "install"]
    assert len(logged(database, "ALTER TABLE app.t ADD v text")) == 1


def test_nothing_is_left_behind(database: Connection) -> None:
    install(database)
    for _ in range(2):
        database.execute(sql(uninstall_sql(LOG)))
    left = "SELECT evtname FROM pg_event_trigger UNION ALL SELECT proname FROM pg_proc WHERE proname LIKE 'airflow%'"
    assert database.execute(sql(left)).fetchall() == []
    assert database.execute("SELECT to_regclass('ctl.ddl_log')").fetchall() == [(None,)]


def test_columns_keep_their_numbers_and_tables_their_oid(database: Connection) -> None:
    install(database)
    steps = logged(
        database,
        "CREATE TABLE app.t (id int PRIMARY KEY, a int, b text)",
        "ALTER TABLE app.t RENAME COLUMN a TO aa",
        "ALTER TABLE app.t DROP COLUMN b, ADD COLUMN b text",
        "ALTER TABLE app.t RENAME TO u",
        "ALTER TABLE app.u SET SCHEMA ctl",
        "ALTER TABLE ctl.u DROP CONSTRAINT t_pkey",
    )
    assert len({row["relid"] for row in steps}) == 1
    assert [names(row) for row in steps] == [
        [(1, "id"), (2, "a"), (3, "b")],
        [(1, "id"), (2, "aa"), (3, "b")],
        *[[(1, "id"), (2, "aa"), (4, "b")]] * 4,
    ]
    assert [f"{row['schema_name']}.{row['table_name']}" for row in steps] == [*["app.t"] * 3, "app.u", "ctl.u", "ctl.u"]
    assert [row["key"] for row in steps] == [*[[1]] * 5, None]


def test_the_value_that_stored_rows_get_is_there(database: Connection) -> None:
    install(database)
    database.execute("SET timezone = 'Europe/Paris'")
    steps = logged(
        database,
        "CREATE TABLE app.t (id int)",
        "ALTER TABLE app.t ADD a int DEFAULT 7, ADD b text, ADD c timestamptz DEFAULT '2026-07-01 10:00+00'",
        "ALTER TABLE app.t ADD r float8 DEFAULT random()",
        "ALTER TABLE app.t ALTER a TYPE bigint",
        "ALTER TABLE app.t ADD g int GENERATED ALWAYS AS (id * 2) STORED",
    )
    added = {column["name"]: column for column in steps[1]["columns"]}
    assert [added[name]["missing"] for name in ("id", "a", "b", "c")] == [
        None,
        "{7}",
        None,
        '{"2026-07-01 10:00:00+00"}',
    ]
    assert [(row["event"], row["rewrite"]) for row in steps] == [
        ("ddl_command_end", None),
        ("ddl_command_end", None),
        ("table_rewrite", 2),
        ("ddl_command_end", None),
        ("table_rewrite", 4),
        ("ddl_command_end", None),
        ("table_rewrite", 2),
        ("ddl_command_end", None),
    ]
    assert {column["name"]: column["generated"] for column in steps[-1]["columns"]}["g"] == "s"


def test_domains_say_what_they_are_made_of(database: Connection) -> None:
    install(database)
    (row,) = logged(
        database,
        "CREATE DOMAIN app.price AS numeric(5,1) CHECK (VALUE > 0)",
        "CREATE DOMAIN app.fee AS app.price",
        "CREATE TYPE app.mood AS ENUM ('a')",
        "CREATE TABLE app.t (p app.fee, m app.mood)",
    )
    assert [(column["type"], column["kind"], column["base"]) for column in row["columns"]] == [
        ("app.fee", "d", "numeric(5,1)"),
        ("app.mood", "e", None),
    ]


def test_a_change_of_a_partitioned_table_is_one_of_its_partitions(database: Connection) -> None:
    install(database)
    steps = logged(
        database,
        "CREATE TABLE app.e (id int, d date, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)",
        "CREATE TABLE app.p PARTITION OF app.e FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "ALTER TABLE app.e ADD v text",
        "ALTER TABLE app.e DETACH PARTITION app.p",
    )
    assert [(row["table_name"], row["relkind"], row["partition"], bool(row["children"])) for row in steps] == [
        ("e", "p", False, False),
        ("p", "r", True, False),
        ("e", "p", False, True),
        ("p", "r", True, False),
        ("e", "p", False, False),
    ]
    assert names(steps[3]) == [(1, "id"), (2, "d"), (3, "v")]


def test_what_takes_a_column_or_a_schema_with_it_is_logged(database: Connection) -> None:
    install(database)
    steps = logged(
        database,
        "CREATE TYPE app.mood AS ENUM ('a')",
        "CREATE TABLE app.t (id int, m app.mood)",
        "DROP TYPE app.mood CASCADE",
        "ALTER SCHEMA app RENAME TO app2",
        "DROP SCHEMA app2 CASCADE",
    )
    assert [(row["event"], row["tag"], row["schema_name"], row["table_name"]) for row in steps] == [
        ("ddl_command_end", "CREATE TABLE", "app", "t"),
        ("ddl_command_end", "DROP TYPE", "app", "t"),
        ("ddl_command_end", "ALTER SCHEMA", "app2", "t"),
        ("sql_drop", "DROP SCHEMA", "app2", "t"),
    ]
    assert names(steps[1]) == [(1, "id")]


def test_tables_made_in_other_ways_are_logged(database: Connection) -> None:
    install(database)
    steps = logged(
        database,
        "CREATE TABLE app.a AS SELECT 1 AS id, 'x'::text AS v",
        "SELECT 1 AS id INTO app.b",
        "CREATE TABLE IF NOT EXISTS app.a (other int)",
        "CREATE TABLE app.c (LIKE app.a)",
    )
    assert [(row["tag"], row["table_name"]) for row in steps] == [
        ("CREATE TABLE AS", "a"),
        ("SELECT INTO", "b"),
        ("CREATE TABLE", "c"),
    ]


def test_temporary_tables_views_and_the_log_itself_are_left_out(database: Connection) -> None:
    install(database)
    steps = logged(
        database,
        "CREATE TEMP TABLE t (id int)",
        "ALTER TABLE t ADD v text DEFAULT random()::text",
        "DROP TABLE t",
        "CREATE VIEW app.v AS SELECT 1 AS id",
        "CREATE MATERIALIZED VIEW app.m AS SELECT 1 AS id",
        "ALTER TABLE ctl.ddl_log ADD COLUMN note text",
        "CREATE SEQUENCE app.s",
    )
    assert steps == []


def test_ddl_that_is_rolled_back_leaves_nothing(database: Connection) -> None:
    install(database)
    assert logged(database, "BEGIN", "CREATE TABLE app.t (id int)", "ROLLBACK") == []


def test_a_label_that_is_renamed_is_logged_for_the_tables_that_have_it(database: Connection) -> None:
    install(database)
    *_, row = logged(
        database,
        "CREATE TYPE app.mood AS ENUM ('a')",
        "CREATE TABLE app.t (id int, m app.mood)",
        "ALTER TYPE app.mood RENAME VALUE 'a' TO 'b'",
    )
    assert (row["tag"], row["kind"], row["table_name"]) == ("ALTER TYPE", "type", "t")


def test_the_ddl_of_others_is_logged_though_they_may_not_write_the_log(database: Connection) -> None:
    install(database)
    role = f"worker_{time.time_ns()}"
    database.execute(sql(f"CREATE ROLE {role}; GRANT CREATE, USAGE ON SCHEMA app TO {role}"))
    database.execute(sql(f"SET ROLE {role}"))
    # a search path of the session must not lead the functions to other objects
    database.execute("SET search_path = app")
    database.execute("CREATE TABLE t (id int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.execute("INSERT INTO ctl.ddl_log (event) VALUES ('forged')")
    database.execute("RESET ROLE")
    assert [(row["schema_name"], row["table_name"]) for row in rows(database)] == [("app", "t")]


@pytest.mark.parametrize("broken", ["columns(oid)", "below(oid)"])
def test_a_ddl_that_cannot_be_described_leaves_a_row_that_says_so(database: Connection, broken: str) -> None:
    install(database)
    database.execute("CREATE TABLE app.t (id int)")
    database.execute(sql(f"DROP FUNCTION ctl.airflow_cdc_{broken}"))
    (row,) = logged(database, "ALTER TABLE app.t ADD v text")
    assert (row["tag"], row["object"], row["columns"]) == ("ALTER TABLE", "app.t", None)
    assert "does not exist" in row["error"]
    assert row["relid"] == database.execute("SELECT 'app.t'::regclass::oid::bigint").fetchone()[0]  # type: ignore[index]


def test_a_log_that_cannot_be_written_stops_no_ddl(database: Connection) -> None:
    install(database)
    database.execute("ALTER TABLE ctl.ddl_log RENAME TO away")
    warnings: list[str] = []
    database.add_notice_handler(lambda said: warnings.append(said.message_primary or ""))
    database.execute("CREATE TABLE app.t (id int)")
    database.execute("ALTER TABLE app.t ADD v float8 DEFAULT random()")
    database.execute("DROP TABLE app.t")
    assert len([text for text in warnings if text.startswith("airflow-cdc: this DDL is not in the log")]) == 4


def test_ddl_that_began_before_the_triggers_is_waited_for(database: Connection) -> None:
    database.execute("CREATE TABLE app.t (id int)")
    with psycopg.connect(database.info.dsn, password=database.info.password) as other:
        other.execute("ALTER TABLE app.t ADD v text")
        installing = threading.Thread(target=install, args=[database])
        installing.start()
        time.sleep(0.5)
        assert installing.is_alive()
        other.commit()
        installing.join(30)
    assert [names(row) for row in rows(database)] == [[(1, "id"), (2, "v")]]


# ---- the command


def test_the_command_installs_and_removes(database: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    database.execute("CREATE TABLE app.t (id int)")
    assert main(["postgres", "ddl-triggers", "--install", "shop_db", "--table", 'Audit."Ddl Log"']) == 0
    stored = database.execute('SELECT event, object FROM audit."Ddl Log"').fetchall()
    assert stored == [("install", "app.t")]
    assert main(["postgres", "ddl-triggers", "--uninstall", "shop_db", "--table", 'audit."Ddl Log"']) == 0
    assert database.execute("SELECT count(*) FROM pg_event_trigger").fetchone() == (0,)
    assert capsys.readouterr().err == ""


def test_what_is_printed_can_be_run(database: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["postgres", "ddl-triggers", "--print"]) == 0
    printed = capsys.readouterr().out
    make, describe = printed.split("\n-- DDL that began before")
    database.execute(sql(make))
    database.execute(sql("-- DDL that began before" + describe))
    assert len(logged(database, "CREATE TABLE app.t (id int)")) == 1


def test_the_heartbeat_writes_who_the_server_is(database: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["postgres", "ddl-triggers", "--heartbeat-query"]) == 0
    printed = capsys.readouterr().out
    database.execute(sql("\n".join(line for line in printed.splitlines() if not line.startswith("--"))))
    query = printed.split("heartbeat.action.query=")[1]
    for _ in range(2):
        database.execute(sql(query))
    ((identifier, timeline),) = database.execute("SELECT system_identifier, timeline FROM ctl.beat").fetchall()
    assert identifier == str(database.execute("SELECT system_identifier FROM pg_control_system()").fetchone()[0])  # type: ignore[index]
    assert timeline == "00000001"


def test_a_login_without_rights_is_explained(
    database: Connection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"plain_{time.time_ns()}"
    database.execute(sql(f"CREATE ROLE {role} LOGIN PASSWORD 'x'"))
    document = {"conn_type": "postgres", "host": "127.0.0.1", "port": database.info.port, "login": role}
    monkeypatch.setenv("AIRFLOW_CONN_PLAIN", json.dumps({**document, "password": "x", "schema": database.info.dbname}))
    assert main(["postgres", "ddl-triggers", "--install", "plain"]) == 2
    assert "only a superuser" in capsys.readouterr().err


def test_a_server_that_is_away_is_worth_another_try(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "login": "x"}
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", json.dumps(document))
    assert main(["postgres", "ddl-triggers", "--install", "away"]) == 5
    assert "[postgres.unreachable]" in capsys.readouterr().err


def test_without_psycopg_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["postgres", "ddl-triggers", "--install", "away"]) == 2
    assert "airflow-provider-cdc[postgres]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "takes one of"),
        (["--print", "--heartbeat-query"], "takes one of"),
        (["--print", "--table", "ddl_log"], "is not SCHEMA.TABLE"),
        (["--print", "--table", 'ctl."a"b"'], "is not SCHEMA.TABLE"),
    ],
)
def test_other_arguments_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["postgres", "ddl-triggers", *arguments]) == 2
    assert said in capsys.readouterr().err
