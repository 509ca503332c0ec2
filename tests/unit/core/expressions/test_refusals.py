# SPDX-License-Identifier: Apache-2.0
"""Check what is refused, with the place in the text and what to do."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.expressions import syntax
from airflow_provider_cdc.core.expressions.errors import ExpressionError
from airflow_provider_cdc.core.expressions.expression import parse

COLUMNS = {
    "a": pa.int32(), "big": pa.int64(), "price": pa.decimal128(30, 20), "f": pa.float64(), "name": pa.string(),
    "flag": pa.bool_(), "day": pa.date32(), "made": pa.timestamp("us"), "raw": pa.binary(),
    "vector": pa.list_(pa.float32()),
}  # fmt: skip

# what is refused without knowing the columns: text, beginning of the message, what the caret stands under
SYNTAX = [
    ("", "the expression is empty", ""),
    ("  ", "the expression is empty", ""),
    ("a = ", "something is missing after =", "="),
    ("a AND", "something is missing after AND", "AND"),
    ("a b", "not understood here: b", "b"),
    ("a AS b", "not understood here: AS", "AS"),
    ("(a", "not understood here: expecting )", "a"),
    ("a)", "not understood here: )", ")"),
    ("CASE WHEN a THEN 1", "not understood here: expected END", "1"),
    ("a = 'x", "the quote ' is not closed", "'x"),
    ('a = "x', 'the quote " is not closed', '"x'),
    ("`a", "the quote ` is not closed", "`a"),
    ("a -- b", "-- begins a comment", "-- b"),
    ("a /* b */", "/* begins a comment", "/* b"),
    ("a # b", "# begins a comment", "# b"),
    ("a; b", "only one expression", ";"),
    ("a = ?", "a placeholder is not part", "?"),
    ("a = :b", "a placeholder is not part", ":"),
    ("a = @b", "a placeholder is not part", "@"),
    ("a = {b}", "a placeholder is not part", "{"),
    ("a || b", "|| is read differently by databases; write CONCAT", "||"),
    ("a && b", "&& is read differently", "&&"),
    ("!a", "write NOT", "!"),
    ("a == b", "write =", "=="),
    ("a::int", "write CAST", "::"),
    ("a <=> b", "<=> is not supported; write a = b OR", "<=>"),
    ("a[1]", "[1] is not part of expressions", "["),
    ("a & 1", "& is not part of expressions", "&"),
    ("a -> b", "-> is not part of expressions", "->"),
    ("*", "* is not part of expressions; name the column", "*"),
    ("t.a = 1", "a column is named without its table", "t.a"),
    ("t.*", "* is not part of expressions", "t.*"),
    ("FROBNICATE(a)", "unknown function FROBNICATE", "FROB"),
    ("1 + LOWR(a)", "unknown function LOWR; did you mean LOWER?", "LOWR"),
    ("IFNULL(a, 1)", "IFNULL is not known; write COALESCE", "IFNULL"),
    ("SUM(a)", "SUM is an aggregate", "SUM"),
    ("COUNT(*)", "COUNT is an aggregate", "COUNT"),
    ("SUM(a) OVER (PARTITION BY b)", "a window function is not part", "SUM"),
    ("ROW_NUMBER()", "ROW_NUMBER is a window function", "ROW"),
    ("NOW()", "NOW gives another value at another time or place", "NOW"),
    ("RAND() < 0.5", "RAND gives another value", "RAND"),
    ("a = UUID()", "UUID gives another value", "UUID"),
    ("CURRENT_TIMESTAMP > a", "CURRENT_TIMESTAMP gives another value", "CURRENT"),
    ("a = (SELECT 1)", "a subquery is not part of expressions", "1"),
    ("a IN (SELECT b FROM c)", "IN takes a list of values", "a"),
    ("EXISTS (SELECT 1)", "EXISTS belongs to a subquery", "EXISTS"),
    ("a IN ()", "IN takes a list of values", "a"),
    ("a IS TRUE", "IS is followed by NULL or NOT NULL", "a"),
    ("a IS DISTINCT FROM b", "IS DISTINCT FROM is not supported", "a"),
    ("a ILIKE 'b'", "ILIKE is not supported; write LOWER", "a"),
    ("a RLIKE 'b'", "regular expressions are not supported", "a"),
    ("a DIV 2", "DIV is not supported", "a"),
    ("a LIKE b", "the pattern of LIKE", "b"),
    ("a = 'x\\y'", "a backslash is not possible", "'x"),
    ("a LIKE 'x!%' ESCAPE '\\'", "with ESCAPE, a backslash is not possible", "'x"),
    ("'a' 'b'", "two texts without a sign between them", "'a'"),
    ("N'a'", "write the text without the letter", "N'a'"),
    ("0x1F", "write the number with decimal digits", "0x1F"),
    ("1_000", "not understood here: _000", "_000"),
    ("a + INTERVAL '1' DAY", "INTERVAL is not part of expressions", "'1'"),
    ("LOWER(DISTINCT a)", "DISTINCT is not part of expressions", "a"),
    ("a COLLATE utf8mb4_bin = 'x'", "COLLATE is not part of expressions", "a"),
    ("a = b IS NULL", "databases read this differently; write parentheses", "b IS"),
    ("a = (b) IS NULL", "databases read this differently", "b) IS"),
    ("a IS NULL = b", "databases read this differently", "a IS"),
    ("a < b < c", "databases read this differently", "a <"),
    ("a = NOT b", "databases read this differently", "b"),
    ("a LIKE 'x' = b", "databases read this differently", "a LIKE"),
    ("a = .5", "write a number with a digit before its point", "."),
    ("1e400", "the number is too large for a DOUBLE", "1e400"),
    ("1" * 39, "the number has more than 38 digits", "1111"),
    ("a = 1 + CAST(b AS TIME)", "CAST to TIME is not supported; known: SMALLINT", "CAST"),
    ("CAST(a AS VARCHAR(10))", "CAST to STRING takes no length", "CAST"),
    ("CAST(a AS DECIMAL)", "CAST to DECIMAL needs its digits", "CAST"),
    ("CAST(a AS DECIMAL(39, 2))", "a DECIMAL has 1 to 38 digits", "CAST"),
    ("CAST(a AS DATE FORMAT 'YYYY')", "STRTODATE is not part of expressions", "a AS"),
    ("TRY_CAST(a AS INT)", "unknown function TRY_CAST", "TRY"),
    ("SUBSTRING(a FROM 2)", "not understood here: expecting )", "FROM"),
    ("CREATE TABLE a (b INT)", "not understood here: CREATE", "CREATE"),
    ("(" * 60 + "a" + ")" * 60, "the expression is nested deeper than 50 levels", "("),
    ("(" * 900 + "a" + ")" * 900, "the expression is nested deeper than 50 levels", "("),
    ("a" * 20_001, "the expression has more than 20000 characters", ""),
]  # fmt: skip

# what is refused for the types of the columns
TYPES = [
    ("nam = 'x'", "unknown column nam; did you mean name?", "nam"),
    ("b + 1", "unknown column b", "b"),
    ("a = '1'", "INT and STRING cannot be compared; write CAST(... AS INT)", "'1'"),
    ("name = 1", "STRING and INT cannot be compared; write CAST(... AS INT)", "1"),
    ("flag = 1", "BOOLEAN and INT cannot be compared; TRUE and FALSE are not 1 and 0 here", "1"),
    ("made > 5", "TIMESTAMP and INT cannot be compared", "5"),
    ("day = 'today'", "the value 'today' does not become TIMESTAMP", "'today'"),
    ("day = name", "DATE and STRING cannot be compared; write CAST(... AS DATE)", "name"),
    ("raw = 'x'", "BINARY and STRING cannot be compared", "'x'"),
    ("vector = vector", "list<", "vector"),
    ("a IN (1, 'x')", "INT and STRING cannot be compared", "'x'"),
    ("a + name", "+ takes numbers, not STRING; write CONCAT", "name"),
    ("day + 1", "+ takes numbers, not DATE", "day"),
    ("flag * 2", "* takes numbers, not BOOLEAN", "flag"),
    ("price * price", "the result would have 40 digits after the point", "price"),
    ("name AND flag", "a condition is expected here, and this is STRING", "name"),
    ("CASE WHEN day THEN 1 END", "a condition is expected here, and this is DATE", "day"),
    ("CASE WHEN flag THEN 1 ELSE 'x' END", "INT and STRING are not results of one CASE", "'x'"),
    ("COALESCE(a, name)", "INT and STRING are not operands of one COALESCE", "name"),
    ("LOWER(a)", "LOWER takes a text here, not INT; write CAST(... AS STRING)", "a"),
    ("CONCAT(name, raw)", "CONCAT takes a value that has a text here, not BINARY", "raw"),
    ("ABS(name)", "ABS takes a number here, not STRING", "name"),
    ("YEAR(name)", "YEAR takes a date or timestamp here, not STRING", "name"),
    ("HOUR(day)", "HOUR takes a timestamp here, not DATE", "day"),
    ("a LIKE '1%'", "LIKE takes a text, not INT", "a"),
    ("name LIKE 'a\\b'", "the escape character \\ stands in a pattern only before %, _", "'a"),
    ("name LIKE 'a' ESCAPE 'xy'", "ESCAPE takes one character", "'xy'"),
    ("name LIKE 'a!' ESCAPE '!'", "the escape character ! stands in a pattern only before %, _, !", "'a!'"),
    ("LOWER()", "LOWER takes 1 argument, not 0", "LOWER"),
    ("CONCAT()", "CONCAT takes 1 or more arguments, not 0", "CONCAT"),
    ("SUBSTRING(name)", "SUBSTRING takes 2 to 3 arguments, not 1", "SUB"),
    ("SUBSTRING(name, 0)", "SUBSTRING takes a literal here: a position, which counts from 1", "0"),
    ("SUBSTRING(name, a)", "SUBSTRING takes a literal here", "a"),
    ("LEFT(name, -1)", "LEFT takes a literal here: a length of 0 or more", "-1"),
    ("LPAD(name, 5, '')", "LPAD takes a literal here: a text that is not empty", "''"),
    ("LPAD(name, 1000000)", "LPAD takes a literal here: a length of 0 to 10000", "1000000"),
    ("REPLACE(name, '', 'x')", "REPLACE takes a literal here: a text that is not empty", "''"),
    ("DATE_TRUNC('decade', made)", "DATE_TRUNC takes a literal here: one of YEAR, QUARTER", "'decade'"),
    ("JSON_VALUE(name, 'a')", "JSON_VALUE takes a literal here: a path of $", "'a'"),
    ("ROUND(f, 2)", "ROUND of a DOUBLE has no digits after the point", "ROUND"),
    ("ROUND(price, -1)", "ROUND takes a literal here: digits after the point", "-1"),
    ("CAST(day AS INT)", "DATE does not become INT", "CAST"),
    ("CAST(flag AS DOUBLE)", "BOOLEAN does not become DOUBLE", "CAST"),
    ("CAST('x' AS INT) = a", "the value 'x' does not become INT", "'x'"),
    ("DATE '2023-02-29' = day", "the value '2023-02-29' does not become DATE", "'2023"),
    ("a > 1 / 0", "this part fails on every row: a division by zero", "1"),
    ("9223372036854775807 + 1", "this part fails on every row", "922"),
    ("NULL", "NULL has no type here; write CAST(NULL AS type)", "NULL"),
    ("COALESCE(NULL, NULL)", "NULL has no type here", "COALESCE"),
]  # fmt: skip


def shown(sql: str, error: ExpressionError, message: str, below: str) -> None:
    assert error.message.startswith(message)
    assert sql[error.position :].startswith(below)
    text, line, caret = (str(error) + "\n").split("\n")[:3] if sql else (*str(error).split("\n"),)
    assert text == error.message
    assert line[len(caret) - 1 :].startswith(below[:1]) and caret.strip() == "^"


@pytest.mark.parametrize(("sql", "message", "below"), SYNTAX, ids=[sql[:40] for sql, _, _ in SYNTAX])
def test_what_is_not_an_expression(sql: str, message: str, below: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(sql)
    shown(sql, caught.value, message, below)


@pytest.mark.parametrize(("sql", "message", "below"), TYPES, ids=[sql for sql, _, _ in TYPES])
def test_what_does_not_fit_its_columns(sql: str, message: str, below: str) -> None:
    expression = parse(sql)
    with pytest.raises(ExpressionError) as caught:
        expression.type(COLUMNS)
    shown(sql, caught.value, message, below)


def test_the_caret_is_under_its_line() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("a = 1 AND\n  \tfoo(b)\nAND c").type(COLUMNS)
    assert str(caught.value) == "unknown function FOO; did you mean FLOOR?\n     foo(b)\n     ^"


def test_a_long_line_is_shown_around_the_caret() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("a" * 300 + " + foo(b) + " + "c" * 300)
    _, line, caret = str(caught.value).split("\n")
    assert len(line) == 102 and line[len(caret) - 1 :].startswith("foo(b)")


def test_signs_in_quotes_are_texts_and_names() -> None:
    types = {"a;b": pa.string(), "c -- d": pa.string(), "x?": pa.int32(), "count(*)": pa.int32()}
    text = "`a;b` = '; -- /* ? :x' AND \"c -- d\" <> '||' AND `x?` = `count(*)`"
    assert parse(text).type(types) == pa.bool_()
    assert parse(text).columns == tuple(types)


def test_columns_may_be_named_like_functions_and_words() -> None:
    names = [
        "date",
        "year",
        "left",
        "comment",
        "status",
        "key",
        "rank",
        "count",
        "type",
        "value",
        "all",
        "index",
        "replace",
        "show",
    ]
    for name in names:
        assert parse(f"{name} = 1 OR id = 2").columns == (name, "id")


def test_an_edition_of_sqlglot_with_another_precedence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    syntax._check_precedence.cache_clear()
    monkeypatch.setitem(syntax._SHAPES, "x - x % x", "(% (- x x) x)")
    with pytest.raises(ExpressionError, match="does not read operators as SQL does; install sqlglot"):
        parse("a = 1")
