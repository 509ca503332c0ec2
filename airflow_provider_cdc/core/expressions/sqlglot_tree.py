# SPDX-License-Identifier: Apache-2.0
"""Have sqlglot parse a text, and keep what its tree lacks: where words begin, and which parentheses are written.

Its classes are used as they are, as those of its compiled edition have no subclasses in Python.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from sqlglot import exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from airflow_provider_cdc.core.expressions.errors import ExpressionError
from airflow_provider_cdc.core.expressions.refused import BARE_FUNCTIONS, FUNCTION_REASONS, SIGN_REASONS, SIGNS

MOST_LEVELS = 50  # each takes some frames of Python's stack wherever a tree is walked
AMBIGUOUS = "databases read this differently; write parentheses around what belongs together"
CALLED = "function "
"""Begins the names of functions in the tree, none of which sqlglot knows, so that it rewrites none."""

_NAMES = "sqlite"  # of its dialects one that takes names in backticks and in double quotes
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`")
_QUOTES = re.compile("['\"`]")
_KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "BETWEEN", "IS", "CASE", "WHEN", "THEN", "ELSE", "CAST"}
)
_WORDS = {"NULL": exp.Null, "TRUE": exp.Boolean, "FALSE": exp.Boolean, "CASE": exp.Case, "CAST": exp.Cast}
_BEFORE_OPERANDS = frozenset({"NOT", "-", "+"})


def parse_text(text: str) -> Any:
    """Return sqlglot's tree of one expression; ``meta["start"]`` of its nodes is their place, where it is known.

    :raises ExpressionError: the text is none.
    """
    tokens = _tokens(text)
    if not tokens:
        raise ExpressionError("the expression is empty", text, 0)
    _check_levels(tokens, text)
    try:
        (tree,) = parser.Parser().parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        raise _misread(error, text) from None
    _place_words(tree, tokens)
    _check_parentheses(tree, tokens, text)
    return tree


def place_of(tree: Any, near: int) -> int:
    """Return where a part of the text begins: the first place that it or a part of it knows, else one that is near."""
    return min((one.meta["start"] for one in tree.walk() if "start" in one.meta), default=near)


def too_deep(text: str, position: int) -> ExpressionError:
    """Return the error of an expression with too many levels."""
    return ExpressionError(f"the expression is nested deeper than {MOST_LEVELS} levels", text, position)


def _tokens(text: str) -> list[Any]:
    """Cut a text; refuse signs and comments that no expression has, of which sqlglot would give some a meaning."""
    unquoted = _QUOTED.sub(lambda match: " " * len(match.group()), text)
    if quote := _QUOTES.search(unquoted):
        raise ExpressionError(f"the quote {quote.group()} is not closed", text, quote.start())
    if comment := re.search(r"--|/\*|#", unquoted):
        message = f"{comment.group()} begins a comment in some databases, which expressions do not have"
        raise ExpressionError(message, text, comment.start())
    try:
        # not at the begin, where some words are commands that take all that follows as one text
        tokens = Dialect.get_or_raise(_NAMES).tokenize(f"({text}")[1:]
    except TokenError:
        raise ExpressionError("the expression is not understood", text, 0) from None
    tokens = [_moved(token, TokenType.VAR if token.token_type is TokenType.COMMAND else None) for token in tokens]
    result: list[Any] = []
    for index, token in enumerate(tokens):
        spelt = unquoted[token.start : token.end + 1]
        if spelt.strip() and spelt not in SIGNS and not re.match(r"\w", spelt):
            raise ExpressionError(SIGN_REASONS.get(spelt, f"{spelt} is not part of expressions"), text, token.start)
        if spelt.upper() in BARE_FUNCTIONS:
            raise ExpressionError(f"{spelt.upper()} {FUNCTION_REASONS[spelt.upper()]}", text, token.start)
        if spelt == "." and re.match(r"[0-9]", unquoted[token.end + 1 :]):
            raise ExpressionError("write a number with a digit before its point", text, token.start)
        before, after = tokens[index - 1] if index else None, tokens[index + 1 : index + 2]
        if re.match(r"[^\W\d]", spelt) and after and after[0].text == "(" and _calls(spelt, before, unquoted):
            token = Token(TokenType.VAR, CALLED + spelt, token.line, token.col, token.start, token.end)
        result.append(token)
    return result


def _moved(token: Any, kind: Any) -> Any:
    """Return a token one character further left, and of another kind if there is one."""
    column = token.col - 1 if token.line == 1 else token.col
    return Token(kind or token.token_type, token.text, token.line, column, token.start - 1, token.end - 1)


def _calls(word: str, before: Any, unquoted: str) -> bool:
    """Return whether a word before a parenthesis is a function, by what stands before it."""
    if word.upper() in _KEYWORDS:
        return False
    if before is None:
        return True
    spelt = unquoted[before.start : before.end + 1].upper()
    return spelt in _KEYWORDS or (spelt in SIGNS and spelt not in (")", "."))


def _check_levels(tokens: list[Any], text: str) -> None:
    """Refuse what is nested so deeply that parsing it might end the process."""
    depth = signs = 0
    for token in tokens:
        word = token.text.upper()
        depth += (word in ("(", "CASE")) - (word in (")", "END"))
        signs = signs + 1 if word in _BEFORE_OPERANDS else 0
        if depth + signs > MOST_LEVELS:
            raise too_deep(text, token.start)


def _misread(error: ParseError, text: str) -> ExpressionError:
    first = error.errors[0] if error.errors else {}
    shown = str(first.get("highlight") or "")
    lines = text.split("\n")
    line = int(first.get("line") or 1)
    position = sum(len(one) + 1 for one in lines[: line - 1]) + int(first.get("col") or 0) - len(shown)
    description = str(first.get("description") or "")
    if description.startswith("Expect"):
        return ExpressionError(f"not understood here: {description[0].lower()}{description[1:]}", text, position)
    if description.startswith("Required"):
        return ExpressionError(f"something is missing after {shown}", text, position)
    return ExpressionError(f"not understood here: {shown or 'the end'}", text, position)


def _place_words(tree: Any, tokens: list[Any]) -> None:
    """Give nodes their places that sqlglot leaves out: the n-th word of a kind is the n-th node of its kind."""
    nodes, words = [*tree.dfs()], [_kind_of_word(*pair) for pair in zip(tokens, [*tokens[1:], None], strict=True)]
    for kind in (exp.Null, exp.Boolean, exp.Case, exp.Cast):
        starts = [token.start for token, word in zip(tokens, words, strict=True) if word is kind]
        placed = [node for node in nodes if type(node) is kind]
        if len(starts) == len(placed):
            for node, start in zip(placed, starts, strict=True):
                node.meta["start"] = start


def _kind_of_word(token: Any, after: Any) -> Any:
    """Return the kind of node that a word begins, None for other words, quoted names and texts."""
    word = token.token_type.name
    if after is not None and after.token_type is TokenType.STRING and word in ("DATE", "TIMESTAMP"):
        return exp.Cast
    if word in ("STRING", "IDENTIFIER"):
        return None
    return _WORDS.get(token.text.upper())


def _check_parentheses(tree: Any, tokens: list[Any], text: str) -> None:
    """Refuse a tree with more parentheses than the text: sqlglot adds them where databases differ in precedence."""
    counts = Counter(place_of(node, -1) for node in tree.walk() if type(node) is exp.Paren)
    indexes = {token.start: index for index, token in enumerate(tokens)}
    for start, count in counts.items():
        index, written = indexes.get(start, 0), 0
        while index and (tokens[index - 1].text == "(" or tokens[index - 1].text.upper() in _BEFORE_OPERANDS):
            index -= 1
            written += tokens[index].text == "("
        before = tokens[index - 1].text if index else ""
        if tokens[index].text == "(" and (before.startswith(CALLED) or before.upper() in ("IN", "CAST")):
            written -= 1
        if count > written:
            raise ExpressionError(AMBIGUOUS, text, start)
