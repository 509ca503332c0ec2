# SPDX-License-Identifier: Apache-2.0
"""Signal expressions that are refused, with the place in their text."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 100  # characters of a long line


class ExpressionError(ValueError):
    """An expression that is not understood, or does not fit its columns.

    :param message: one sentence.
    :param text: the whole expression.
    :param position: of the character that the message is about.
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(message, text, position)
        self.message = message
        self.text = text
        self.position = min(max(position, 0), len(text))

    def __str__(self) -> str:
        begin = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[begin:].partition("\n")[0]
        column = self.position - begin
        first = max(0, min(column - _SHOWN // 2, len(line) - _SHOWN))
        shown = "".join(c if c.isprintable() else " " for c in line[first : first + _SHOWN])
        return f"{self.message}\n  {shown}\n  {' ' * (column - first)}^"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question for the known name that is most like one, in any case of letters; empty if none is."""
    folded = {one.lower(): one for one in known}
    matches = get_close_matches(name.lower(), folded, 1)
    return f"; did you mean {folded[matches[0]]}?" if matches else ""
