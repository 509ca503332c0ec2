# SPDX-License-Identifier: Apache-2.0
"""Say why well known parts of SQL are not part of expressions."""

from __future__ import annotations

from sqlglot import exp

SIGNS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "(", ")", ",", "."})

_PLACEHOLDER = "a placeholder is not part of expressions; write the value"
SIGN_REASONS = {
    "?": _PLACEHOLDER,
    ":": _PLACEHOLDER,
    "@": _PLACEHOLDER,
    "$": _PLACEHOLDER,
    "{": _PLACEHOLDER,
    ";": "only one expression, without a semicolon",
    "||": "|| is read differently by databases; write CONCAT",
    "&&": "&& is read differently by databases; write AND",
    "!": "write NOT",
    "==": "write =",
    "::": "write CAST(value AS type)",
    "<=>": "<=> is not supported; write a = b OR a IS NULL AND b IS NULL",
}

_AGGREGATE = "is an aggregate, and an expression sees one row"
_VARYING = "gives another value at another time or place, and the same rows must always give the same table"
_WINDOW = "is a window function, and an expression sees one row"
_AGGREGATES = "SUM COUNT AVG MIN MAX ANY_VALUE GROUP_CONCAT STRING_AGG ARRAY_AGG COLLECT_LIST STDDEV VARIANCE BIT_AND"
_VARYINGS = (
    "NOW RAND RANDOM UUID SYSDATE CURDATE CURTIME CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER "
    "LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME UTC_TIMESTAMP UNIX_TIMESTAMP GETDATE USER SESSION_USER DATABASE "
    "CONNECTION_ID LAST_INSERT_ID RANDN MONOTONICALLY_INCREASING_ID"
)
_WINDOWS = "ROW_NUMBER RANK DENSE_RANK NTILE LAG LEAD FIRST_VALUE LAST_VALUE"
_OTHER_NAMES = {
    "CEILING": "CEIL",
    "CHARACTER_LENGTH": "LENGTH",
    "CHAR_LENGTH": "LENGTH",
    "DAYOFMONTH": "DAY",
    "IF": "CASE WHEN condition THEN value ELSE value END",
    "IFF": "CASE WHEN condition THEN value ELSE value END",
    "IFNULL": "COALESCE",
    "ISNULL": "value IS NULL",
    "JSON_EXTRACT": "JSON_VALUE",
    "GET_JSON_OBJECT": "JSON_VALUE",
    "LCASE": "LOWER",
    "LEN": "LENGTH",
    "MID": "SUBSTRING",
    "NVL": "COALESCE",
    "SUBSTR": "SUBSTRING",
    "TO_DATE": "CAST(value AS DATE)",
    "TRUNC": "DATE_TRUNC",
    "UCASE": "UPPER",
}
FUNCTION_REASONS = {
    **{name: f"is not known; write {known}" for name, known in _OTHER_NAMES.items()},
    **dict.fromkeys(_AGGREGATES.split(), _AGGREGATE),
    **dict.fromkeys(_VARYINGS.split(), _VARYING),
    **dict.fromkeys(_WINDOWS.split(), _WINDOW),
    **dict.fromkeys(("EXISTS", "ANY", "ALL", "SOME"), "belongs to a subquery, and an expression sees one row"),
}

# functions that SQL calls without parentheses, where nobody meant a column
BARE_FUNCTIONS = frozenset(
    {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME", "LOCALTIMESTAMP", "SESSION_USER"}
)

NODE_REASONS = {
    exp.Window: "a window function is not part of expressions, which see one row",
    exp.Subquery: "a subquery is not part of expressions, which see one row",
    exp.Query: "a query is not part of expressions, which see one row",
    exp.Exists: "a subquery is not part of expressions, which see one row",
    exp.Placeholder: _PLACEHOLDER,
    exp.Parameter: _PLACEHOLDER,
    exp.Star: "* is not part of expressions; name the column",
    exp.Alias: "the expression ends here, and something follows it",
    exp.Tuple: "a list of values stands only after IN",
    exp.Concat: "two texts without a sign between them; write CONCAT",
    exp.IntDiv: "DIV is not supported; write CAST(a / b AS BIGINT)",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM is not supported; write a = b OR a IS NULL AND b IS NULL",
    exp.NullSafeNEQ: "IS DISTINCT FROM is not supported; write a <> b OR a IS NULL AND b IS NOT NULL OR ...",
    exp.RegexpLike: "regular expressions are not supported; write LIKE",
    exp.HexString: "write the number with decimal digits; bytes are not part of expressions",
    exp.National: "write the text without the letter before it",
    exp.ILike: "ILIKE is not supported; write LOWER(value) LIKE pattern",
}
