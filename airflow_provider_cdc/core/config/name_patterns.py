# SPDX-License-Identifier: Apache-2.0
"""Match names of tables with regular expressions whose time grows with the name only, whatever is in it.

Names come from the log and are hostile: Python's own ``re`` may take for ever for one. This is RE2, by pyarrow, which
is imported only where a pipeline has such expressions.
"""

from __future__ import annotations

from collections.abc import Sequence

SYNTAX = "the syntax is RE2's, without look-around and back references"


class NamePattern:
    """A regular expression that matches whole names.

    :param text: the expression; a dot in it is any character, line breaks too.
    :raises ValueError: it is not one, in a sentence.
    """

    def __init__(self, text: str) -> None:
        _groups(text)  # alone first: what is around it below would close its open ends
        self._whole = rf"\A(?s:{text})\z"
        self.groups = _groups(self._whole)
        doubled = sorted({name for name in self.groups if self.groups.count(name) > 1})
        if doubled:
            raise ValueError(f"two groups have one name: {', '.join(doubled)}")

    def matches(self, names: Sequence[str]) -> list[dict[str, str] | None]:
        """Return the groups of each name by their names, None of those that do not match.

        A group that takes no part in a match is empty. A name that is not text (with half of a surrogate pair) never
        matches.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.array([name if _is_text(name) else None for name in names], pa.string())
        groups: list[dict[str, str] | None] = pc.extract_regex(texts, pattern=self._whole).to_pylist()
        return groups


def _groups(text: str) -> tuple[str, ...]:
    """Return the names of an expression's groups.

    :raises ValueError: it is not an expression.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        kind = pc.extract_regex(pa.array([""]), pattern=text).type
    except pa.ArrowInvalid as error:
        words = str(error).splitlines()[0]
        if "unnamed groups" in words:
            raise ValueError("name each group, as (?P<shard>...), or write it as (?:...)") from None
        raise ValueError(f"{words.removeprefix('Invalid regular expression: ')}; {SYNTAX}") from None
    except UnicodeEncodeError:
        raise ValueError("is not text: it has half of a surrogate pair") from None
    return tuple(field.name for field in kind)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
