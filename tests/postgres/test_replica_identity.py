# SPDX-License-Identifier: Apache-2.0
"""The server demands NOT NULL of what identifies rows by an index: a deleted row's other values came with FULL."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.database import Connection


def test_no_column_that_may_be_null_identifies_rows(database: Connection) -> None:
    database.execute("CREATE TABLE app.v (id int PRIMARY KEY, u int, w text)")
    database.execute("CREATE UNIQUE INDEX v_u ON app.v (u)")
    with pytest.raises(psycopg.Error, match="nullable"):
        database.execute("ALTER TABLE app.v REPLICA IDENTITY USING INDEX v_u")
    database.execute("ALTER TABLE app.v ALTER COLUMN u SET NOT NULL")
    database.execute("ALTER TABLE app.v REPLICA IDENTITY USING INDEX v_u")
    with pytest.raises(psycopg.Error, match="replica identity"):
        database.execute("ALTER TABLE app.v ALTER COLUMN u DROP NOT NULL")
