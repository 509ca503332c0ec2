# SPDX-License-Identifier: Apache-2.0
"""The temporary PostgreSQL is a real one, reached the way users reach theirs."""

from __future__ import annotations

import sqlalchemy

from tests.services.postgres import Postgres


def test_sqlalchemy_reads_what_it_wrote(postgres: Postgres) -> None:
    engine = sqlalchemy.create_engine(postgres.url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE stack_round_trip (name TEXT PRIMARY KEY)"))
        connection.execute(sqlalchemy.text("INSERT INTO stack_round_trip VALUES ('café')"))
    with engine.begin() as connection:
        assert connection.execute(sqlalchemy.text("SELECT name FROM stack_round_trip")).scalars().all() == ["café"]
        connection.execute(sqlalchemy.text("DROP TABLE stack_round_trip"))
    engine.dispose()
