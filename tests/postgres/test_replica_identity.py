# SPDX-License-Identifier: Apache-2.0
"""Rows that an index identifies: the server demands NOT NULL of it, and the triggers log where it is not the key's.

So a deleted row with values in columns that may be NULL came with FULL.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.database import Connection, install
from tests.postgres.ddl_log import reason, run, table


def test_no_column_that_may_be_null_identifies_rows(database: Connection) -> None:
    database.execute("CREATE TABLE app.v (id int PRIMARY KEY, u int, w text)")
    database.execute("CREATE UNIQUE INDEX v_u ON app.v (u)")
    with pytest.raises(psycopg.Error, match="nullable"):
        database.execute("ALTER TABLE app.v REPLICA IDENTITY USING INDEX v_u")
    database.execute("ALTER TABLE app.v ALTER COLUMN u SET NOT NULL")
    database.execute("ALTER TABLE app.v REPLICA IDENTITY USING INDEX v_u")
    with pytest.raises(psycopg.Error, match="replica identity"):
        database.execute("ALTER TABLE app.v ALTER COLUMN u DROP NOT NULL")


BY_INDEX = "REPLICA IDENTITY USING INDEX lets a key move"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["USING INDEX v_pkey"], ""),
        (["USING INDEX v_u"], BY_INDEX),
        (["USING INDEX v_u", "USING INDEX v_u"], BY_INDEX),
        (["USING INDEX v_u", "FULL"], "rows changed under REPLICA IDENTITY USING INDEX"),
        (["FULL", "NOTHING", "DEFAULT"], ""),
    ],
)
def test_the_log_says_whether_an_index_that_is_not_the_keys_identifies_rows(
    database: Connection, statements: list[str], said: str
) -> None:
    install(database)
    timeline = run(
        database,
        "CREATE TABLE app.v (id int PRIMARY KEY, u int NOT NULL, w text)",
        "CREATE UNIQUE INDEX v_u ON app.v (u)",
        *(f"ALTER TABLE app.v REPLICA IDENTITY {one}" for one in statements),
    )
    why = reason(table(timeline, "app.v"))
    assert why.startswith(said)
    assert bool(why) == bool(said)


def test_a_table_without_key_whose_rows_an_index_identifies_is_as_its_rows_say(database: Connection) -> None:
    install(database)
    known = table(
        run(
            database,
            "CREATE TABLE app.v (u int NOT NULL UNIQUE, w text)",
            "ALTER TABLE app.v REPLICA IDENTITY USING INDEX v_u_key",
        ),
        "app.v",
    )
    assert reason(known) == ""
    assert reason(table(run(database, "ALTER TABLE app.v ADD PRIMARY KEY (w)"), "app.v")).startswith(BY_INDEX)
