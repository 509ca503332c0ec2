# SPDX-License-Identifier: Apache-2.0
"""Names and texts from outside, as they may stand in a log, an error or a terminal."""

from __future__ import annotations

import json
import re

# Control characters (line breaks and terminal commands among them), what changes the direction of text, invisible
# characters, lone surrogates. Joiners (U+200C, U+200D) stay: names in several languages are written with them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    r"""Return a text in one line without control, bidirectional and invisible characters.

    They are written as JSON escapes such as ``\u001b``, so that JSON which was made printable means the same.
    """
    return _UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text)


def printable_lines(text: str) -> str:
    """Return the same for a text of several lines; those after the first are indented, so that none looks like ours."""
    return "\n  ".join(map(printable, text.split("\n")))
