# SPDX-License-Identifier: Apache-2.0
"""Make sqlglot read expressions: names in backticks or double quotes, and each call as it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError

__all__ = ["Expressions", "ParseError", "TokenError", "exp"]


def _placed(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Keep where a word begins whose node has no place of its own."""

    def parsed(self: Any, *arguments: Any) -> Any:
        word = arguments[0] if arguments else self._prev
        node = parse(self, *arguments)
        if node is not None:
            node.meta.setdefault("start", word.start)
        return node

    return parsed


class Expressions(Dialect):  # type: ignore[misc]
    """Read expressions; functions are not known, so that none is rewritten."""

    class Tokenizer(tokens.Tokenizer):  # type: ignore[misc]
        """Cut a text as standard SQL does: a backslash is an ordinary character."""

        QUOTES = ["'"]  # noqa: RUF012
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012
        STRING_ESCAPES = ["'"]  # noqa: RUF012

    class Parser(parser.Parser):  # type: ignore[misc]
        """Read CASE and CAST, and other calls as a name with arguments."""

        FUNCTIONS: Any = {}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: Any = {}  # noqa: RUF012
        FUNCTION_PARSERS: Any = {"CAST": _placed(parser.Parser.FUNCTION_PARSERS["CAST"])}  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS: Any = {  # noqa: RUF012
            "CASE": _placed(parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"])
        }
        PRIMARY_PARSERS: Any = {  # noqa: RUF012
            kind: _placed(parse) for kind, parse in parser.Parser.PRIMARY_PARSERS.items()
        }

        def _parse_paren(self) -> Any:
            """Keep where parentheses are written: sqlglot adds others, where databases differ in precedence."""
            begin = self._curr
            node = super()._parse_paren()
            if isinstance(node, exp.Paren):
                node.meta["start"] = begin.start
            return node
