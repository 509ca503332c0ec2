# SPDX-License-Identifier: Apache-2.0
"""Test the lexical rules of MySQL and MariaDB."""

from __future__ import annotations

import contextlib
import time

import pytest

from airflow_provider_cdc.core.ddl.splitting import split
from airflow_provider_cdc.core.ddl.tokens import DdlError, Kind, tokenize


def values(text: str) -> list[str]:
    """Return the values of all tokens."""
    return [token.value for token in tokenize(text)]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\nb\t\\c\0'", "a\nb\t\\c\0"),
        (r"'50\% \_'", r"50\% \_"),
        (r"'\q'", "q"),
        ("''", ""),
        ("n'x'", "x"),
        ("'-- no comment /* */ ; #'", "-- no comment /* */ ; #"),
        ("'two\nlines'", "two\nlines"),
    ],
)
def test_strings_are_unescaped(literal: str, value: str) -> None:
    (token,) = tokenize(literal)
    assert (token.kind, token.value) == (Kind.STRING, value)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("`or``der`", Kind.QUOTED, "or`der"),
        (r"`a\`", Kind.QUOTED, "a\\"),
        ('"a""b"', Kind.DOUBLE_QUOTED, '"a""b"'),
        ("b'101'", Kind.BITS, "b'101'"),
        ("X'4D'", Kind.BITS, "X'4D'"),
        ("0x4D", Kind.BITS, "0x4D"),
        ("0x4Dg", Kind.NAME, "0x4Dg"),
        ("12.50", Kind.NUMBER, "12.50"),
        (".5", Kind.NUMBER, ".5"),
        ("1e-7", Kind.NUMBER, "1e-7"),
        ("1st_name", Kind.NAME, "1st_name"),
        ("a$b", Kind.NAME, "a$b"),
        ("größe", Kind.NAME, "größe"),
        ("таблица", Kind.NAME, "таблица"),
    ],
)
def test_one_token(text: str, kind: Kind, value: str) -> None:
    (token,) = tokenize(text)
    assert (token.kind, token.value) == (kind, value)


def test_digits_after_a_dot_are_a_name() -> None:
    assert values("shop.2024 shop.1e5 `shop`.7") == ["shop", ".", "2024", "shop", ".", "1e5", "shop", ".", "7"]


def test_a_foreign_letter_never_makes_a_keyword() -> None:
    assert tokenize("ındex")[0].word != "INDEX"


@pytest.mark.parametrize(
    "comment",
    [
        "-- rest\n",
        "--\n",
        "# rest\n",
        "/* a ' ` ; */",
        "/**/",
        "/*+ hint */",
        "/*T![x] tidb */",
        "/* gh-ost */",
        "/* 99999 TRUNCATE t */",
    ],
)
def test_comments_are_dropped(comment: str) -> None:
    assert values(f"a {comment} b") == ["a", "b"]


def test_two_minus_signs_without_a_space_are_not_a_comment() -> None:
    assert values("1--2") == ["1", "-", "-", "2"]


@pytest.mark.parametrize(
    "text", ["/*! a */", "/*!50100 a */", "/*!080013 a */", "/*M! a */", "/*M!100301 a */", "/*!a/* x */*/"]
)
def test_executable_comments_are_kept(text: str) -> None:
    assert values(text) == ["a"]


@pytest.mark.parametrize("text", ["'a", "'a''", r"'a\'", '"a', "`a", "`a``", "/* a", "/*! a", "/*!50100 'a */", "\x01"])
def test_an_unterminated_token_raises(text: str) -> None:
    with pytest.raises(DdlError):
        tokenize(text)


@pytest.mark.parametrize(
    "text",
    [
        "'" + "\\'" * 300_000,
        "'" + "''" * 300_000,
        "/*" * 300_000,
        "/*!" * 200_000,
        "1" * 600_000 + "a",
        "1e" * 300_000,
        "`" * 600_001,
    ],
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    start = time.process_time()
    with contextlib.suppress(DdlError):
        tokenize(text)
    assert time.process_time() - start < 10


def test_an_error_states_the_position_and_no_value() -> None:
    with pytest.raises(DdlError) as caught:
        tokenize("CREATE TABLE t (\n  a INT DEFAULT 'secret")
    assert caught.value.code == "ddl.not_understood"
    assert caught.value.where == {"line": 2, "column": 17}
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" ;; -- nothing\n;", 0),
        ("DROP TABLE a; DROP TABLE b;", 2),
        ("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END; DROP TABLE t", 2),
        (
            "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW BEGIN IF NEW.a > 1 THEN SET @x = IF(1, 2, 3); END IF; END",
            1,
        ),
        ("CREATE PROCEDURE p() BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; END; USE d", 2),
        ("CREATE PROCEDURE p() BEGIN l: LOOP LEAVE l; END LOOP; WHILE a DO SET b = 1; END WHILE; END; USE d", 2),
        ("CREATE PROCEDURE p() SELECT 1; DROP TABLE t", 2),
        ("CREATE TABLE function (begin INT); DROP TABLE t", 2),
    ],
)
def test_semicolons_separate_statements_but_not_inside_stored_programs(text: str, count: int) -> None:
    assert len(list(split(tokenize(text)))) == count
