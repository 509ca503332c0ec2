# SPDX-License-Identifier: Apache-2.0
"""FLASHBACK and RECOVER, as the manuals of TiDB, OceanBase and Oracle state them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.ddl.statement import RestoreDatabase, RestoreTable, RevertRows, Statement
from airflow_provider_cdc.core.ddl.table_parts import Name

T, U = Name(None, "t"), Name("s", "u")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RECOVER TABLE t", RestoreTable(T)),
        ("RECOVER TABLE BY JOB 53", RestoreTable(None)),
        ("RECOVER TABLE t 1", RestoreTable(T)),
        ("FLASHBACK TABLE t", RestoreTable(T)),
        ("FLASHBACK TABLE t TO s.u;", RestoreTable(T, U)),
        ("FLASHBACK TABLE t TO timestamp", RestoreTable(T, Name(None, "timestamp"))),
        ("FLASHBACK TABLE t TO TIMESTAMP '2026-01-01 00:00:00'", RevertRows((T,))),
        ("FLASHBACK TABLE t, s.u TO TIMESTAMP '2026-01-01 00:00:00'", RevertRows((T, U))),
        ("FLASHBACK DATABASE d", RestoreDatabase("d")),
        ("FLASHBACK SCHEMA d TO e", RestoreDatabase("d", "e")),
        ("FLASHBACK DATABASE d TO TIMESTAMP '2026-01-01 00:00:00'", RevertRows(database="d")),
        ("FLASHBACK CLUSTER TO TSO 445494839813079041", RevertRows()),
        ("FLASHBACK TABLE t TO BEFORE DROP", RestoreTable(T)),
        ("FLASHBACK TABLE t TO BEFORE DROP RENAME TO s.u", RestoreTable(T, U)),
        ("FLASHBACK TABLE __recycle_$_1_1597028971700936 TO BEFORE DROP RENAME TO s.u", RestoreTable(None, U)),
        ("FLASHBACK DATABASE d TO BEFORE DROP RENAME TO e", RestoreDatabase("d", "e")),
    ],
)
def test_statements(text: str, expected: Statement) -> None:
    assert parse(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FLASHBACK TABLE t TO BEFORE DROP RENAME TO v", RestoreTable(Name(None, "T"), Name(None, "V"))),
        ('FLASHBACK TABLE "BIN$x==$0" TO BEFORE DROP', RestoreTable(None)),
        ("FLASHBACK TABLE s.t TO SCN 123456", RevertRows((Name("S", "T"),))),
        ("FLASHBACK TABLE t TO TIMESTAMP SYSTIMESTAMP - INTERVAL '1' MINUTE", RevertRows((Name(None, "T"),))),
    ],
)
def test_statements_of_oracle(text: str, expected: Statement) -> None:
    assert parse(text, "oracle") == [expected]


@pytest.mark.parametrize("text", ["FLASHBACK t", "RECOVER DATABASE d", "FLASHBACK TABLE t, u TO v", "FLASHBACK TABLE"])
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(DdlError):
        parse(text)
