# SPDX-License-Identifier: Apache-2.0
"""Test that the parser returns statements or raises DdlError, whatever the text."""

from __future__ import annotations

import random
import time

import pytest

from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from tests.sample import ALL, TIMES

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS `shop`.orders (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'a''b\\n',
       e ENUM('a','it''s') CHARACTER SET latin1 DEFAULT _latin1'a', b BIT(3) DEFAULT b'101', x BINARY(2) DEFAULT x'41',
       g INT GENERATED ALWAYS AS (id * (2 + 1)) VIRTUAL, ts TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE NOW(3),
       d DECIMAL(10,2) DEFAULT -1.5e3, CONSTRAINT pk PRIMARY KEY (id, e(3) DESC), UNIQUE KEY u (b, x) USING BTREE,
       FOREIGN KEY (b) REFERENCES p (id) ON DELETE SET NULL, CHECK (id > 0)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
       PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10))""",
    """ALTER TABLE t ADD COLUMN IF NOT EXISTS (a INT, b TEXT(300)), CHANGE c `d e` VARCHAR(5) FIRST, DROP x,
       MODIFY m SET('p','q') AFTER n, ALTER k SET DEFAULT (1), RENAME COLUMN r TO s, ADD UNIQUE (a), DROP PRIMARY KEY,
       RENAME TO b.u, CONVERT TO CHARACTER SET utf8mb4, ENGINE=InnoDB, ORDER BY a, b, ALGORITHM=INPLACE, LOCK=NONE""",
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE b.o WITHOUT VALIDATION",
    "ALTER TABLE t REORGANIZE PARTITION a, b INTO (PARTITION p VALUES LESS THAN (20))",
    "RENAME TABLE a TO tmp, b TO a, /*!50000 tmp TO b */; DROP TABLE IF EXISTS `x`.y, z; TRUNCATE TABLE q; USE `d`",
    "CREATE DATABASE IF NOT EXISTS d DEFAULT CHARACTER SET = latin1; CREATE UNIQUE INDEX i ON t (a, b(3)) LOCK=NONE",
    "CREATE DEFINER=`r`@`%` PROCEDURE p() BEGIN IF a THEN SELECT 'x;'; END IF; END; SET STATEMENT a=1 FOR DROP TABLE t",
)
PART = 1 if ALL else 4  # of huge texts
NOISE = (
    *"'\"`();,.=@*/-#\\\n\x00 ",
    *(
        "/*",
        "*/",
        "/*!",
        "--",
        "''",
        "b'",
        "x'",
        "NULL",
        "KEY",
        "AS",
        "DEFAULT",
        "TABLE",
        "AFTER",
        "BEGIN",
        "END",
        "ENUM",
    ),
    *("COLLATE", "_utf8", "1", "9" * 40, "é", "\U0001f600", "\ud800"),
)


def outcome(text: str) -> None:
    """Parse; any exception but DdlError fails the test."""
    try:
        parse(text)
    except DdlError as error:
        assert error.where["line"] >= 1
        assert len(str(error)) < 400


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_beginning_of_a_statement(statement: str) -> None:
    for length in range(len(statement)):
        outcome(statement[:length])


@pytest.mark.parametrize("seed", range(8 * TIMES))
def test_mutations(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        text = chance.choice(STATEMENTS)
        for _ in range(chance.randint(1, 4)):
            offset, width = chance.randrange(len(text) + 1), chance.choice((0, 0, 1, 3, 20))
            other = chance.choice(STATEMENTS)
            start = chance.randrange(len(other))
            insert = chance.choice((chance.choice(NOISE), "", other[start : start + 15]))
            text = text[:offset] + insert + text[offset + width :]
        outcome(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT DEFAULT " + "(" * (200_000 // PART),
        "CREATE TABLE t (a INT DEFAULT " + "(" * (100_000 // PART) + "1" + ")" * (100_000 // PART) + ")",
        "CREATE TABLE t " + "(" * (200_000 // PART) + "SELECT 1",
        "CREATE TABLE t (" + ", ".join(f"c{i} INT NOT NULL DEFAULT 7" for i in range(20_000 // PART)) + ")",
        "CREATE TABLE t (a INT, " + ", ".join("UNIQUE (a)" for _ in range(50_000 // PART)) + ")",
        "ALTER TABLE t " + ", ".join("DROP a" for _ in range(50_000 // PART)),
        "DROP TABLE " + ", ".join("a.b" for _ in range(50_000 // PART)),
        "a " * (200_000 // PART),
        "DROP TABLE t;" * (20_000 // PART),
        "CREATE PROCEDURE p() " + "BEGIN " * (100_000 // PART),
        "CREATE TABLE t (e ENUM(" + ",".join("'x'" for _ in range(65_000 // PART)) + "))",
        "CREATE TABLE t (a VARCHAR(9) DEFAULT " + "'a' " * (100_000 // PART) + ")",
        "CREATE TABLE t (a INT DEFAULT 0x" + "f" * (300_000 // PART) + ")",
        "CREATE TABLE t (a INT(" + "9" * (300_000 // PART) + "))",
    ],
    ids=range(14),
)
def test_huge_statements_take_linear_time(text: str) -> None:
    start = time.process_time()
    outcome(text)
    assert time.process_time() - start < 10 / PART


HUGE = {
    "more than a megabyte": "ALTER TABLE t ADD c INT COMMENT '" + "x" * 1_000_000 + "'",
    "five megabytes of quotes": "ALTER TABLE t COMMENT " + "'" * 5_000_000,
    "a megabyte of semicolons": "ALTER TABLE t " + ";" * 900_000,
    "columns": "ALTER TABLE t " + ",".join(f"ADD c{i} INT" for i in range(20_000)),
    "columns of keys": "CREATE OR REPLACE TABLE t (" + ",".join(f"c{i} INT UNIQUE" for i in range(20_000)) + ")",
    "brackets": "ALTER TABLE t " + "(" * 300_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_text_parks_the_tables_it_names_and_costs_little_each_time(name: str) -> None:
    changes = [
        SchemaChange(f"{number:09}", number, "shop", text)
        for number, text in enumerate(("CREATE TABLE t (a INT)", "CREATE TABLE other (a INT)", HUGE[name]))
    ]
    start = time.process_time()
    for _ in range(10):  # a batch builds several timelines; later batches build them again
        timeline = build_timeline(changes)
    assert time.process_time() - start < 5
    blocked = {str(table.last_name): table.blocked for table in timeline.tables.values()}
    assert [block.reason.split("]")[0] for block in blocked["shop.t"]] == ["[ddl.not_understood"]
    assert blocked["shop.other"] == []


def test_the_largest_table_that_mysql_allows_is_read() -> None:
    """4096 columns, one of them an ENUM with 65,535 labels (MySQL's manual: limits on table column count, ENUM)."""
    labels = ",".join(f"'{number}'" for number in range(65_535))
    columns = ",".join(f"c{number} TINYINT NOT NULL" for number in range(4095))
    (created,) = parse(f"CREATE TABLE t (e ENUM({labels}), {columns})")
    assert len(created.columns) == 4096  # type: ignore[union-attr]
