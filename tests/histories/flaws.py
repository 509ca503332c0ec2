# SPDX-License-Identifier: Apache-2.0
"""Write events as tools do that leave something out, or say it in another way than the source has it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from tests.histories.random_kinds import Palette
from tests.histories.source import DdlEvent, Event, Name, Row, RowEvent, Structure, TableChange, TruncateEvent, quoted

HIDDEN_HELPERS = "hidden helpers"  # statements of gh-ost's helper tables are in the log, their rows are not
LOST_COLUMNS = "lost columns"  # tableChanges of an ALTER lack a column that the table has
TWO_WORDS = "two words"  # types have names of two words, tableChanges with the length next to the name
TYPED_NAMES = "typed names"  # statements name tables as somebody typed them, rows in lower case
FILTERED = "filtered"  # rows lack a column that statements name
HARD_TEXTS = "hard texts"  # texts become numbers that servers read differently

FLAWS = (HIDDEN_HELPERS, LOST_COLUMNS, TWO_WORDS, TYPED_NAMES, FILTERED, HARD_TEXTS)
# statements without which a flaw does not show
NEEDS = {HIDDEN_HELPERS: ("ghost",), LOST_COLUMNS: ("alter",), TWO_WORDS: ("create",), HARD_TEXTS: ("alter",)}

FILTERED_COLUMN = "ssn"
_LOWER = ("orders", "order_items", "t_1", "lines")  # names of tables where rows have them in lower case
# what a table says that does not go on because of a flaw
REASONS = {
    LOST_COLUMNS: ("tableChanges",),
    # an update of nothing but such a column shows no former value
    FILTERED: ("exclude_columns", "record.partial_image"),
    HARD_TEXTS: ("values.conversion_unknown",),
}
_SPELLINGS = (("VARCHAR(", "CHARACTER VARYING("), (" DOUBLE ", " DOUBLE PRECISION "))


def is_helper(name: Name) -> bool:
    """Return whether a name is that of one of gh-ost's helper tables."""
    return name[1].endswith("_gho")


def flawed(palette: Palette, flaws: Collection[str], server: str) -> Palette:
    """Return what tables are made of where the tool has these flaws."""
    if TYPED_NAMES in flaws:
        palette = replace(palette, databases=("shop", "stock"), tables=_LOWER)
    if FILTERED in flaws:
        palette = replace(palette, extra=FILTERED_COLUMN)
    return replace(palette, server=server) if HARD_TEXTS in flaws else palette


def as_written(events: Sequence[Event], flaws: Collection[str], rnd: random.Random) -> list[Event]:
    """Return a statement's events as a tool with these flaws writes them."""
    return [shown for event in events for shown in _shown(event, flaws, rnd)] if flaws else list(events)


def _shown(event: Event, flaws: Collection[str], rnd: random.Random) -> Iterator[Event]:
    if isinstance(event, RowEvent):
        if HIDDEN_HELPERS in flaws and is_helper(event.name):
            return
        if FILTERED in flaws:
            structure = unfiltered(event.structure)
            before, after = (_part(row) for row in (event.before, event.after))
            event = replace(event, structure=structure, before=before, after=after)
    elif isinstance(event, DdlEvent):
        if LOST_COLUMNS in flaws and event.kind == "ALTER" and rnd.random() < 0.5:
            records = tuple((database, text, tuple(map(_without_last, said))) for database, text, said in event.records)
            event = replace(event, records=records)
        if TWO_WORDS in flaws:
            event = _rewritten(event, _in_two_words, lambda name: name)
    if TYPED_NAMES in flaws and not isinstance(event, RowEvent) and rnd.random() < 0.7:
        event = _as_typed(event)
    yield event


def unfiltered(structure: Structure) -> Structure:
    """Return the columns that rows have."""
    return replace(structure, columns=tuple(c for c in structure.columns if c.name != FILTERED_COLUMN))


def _part(row: Row | None) -> Row | None:
    return None if row is None else {name: value for name, value in row.items() if name != FILTERED_COLUMN}


def _without_last(change: TableChange) -> TableChange:
    """Return what a connector says that lost a table's last column; never one of the key."""
    structure = change.structure
    lost = [column for column in structure.columns if column.name not in structure.key] if structure else []
    if structure is None or not lost or len(structure.columns) == 1:
        return change
    return replace(change, structure=replace(structure, columns=tuple(c for c in structure.columns if c != lost[-1])))


def _in_two_words(text: str) -> str:
    for one, two in _SPELLINGS:
        text = text.replace(one, two)
    return text


def _as_typed(event: DdlEvent | TruncateEvent) -> Event:
    if isinstance(event, TruncateEvent):
        return replace(event, name=_typed(event.name))
    names = {part for _, _, changes in event.records for change in changes for part in change.name} | set(event.name)
    return _rewritten(event, lambda text: _names_typed(text, names), _typed)


def _typed(name: Name) -> Name:
    return name[0].title(), name[1].title()


def _names_typed(text: str, names: Collection[str]) -> str:
    for name in names:
        text = text.replace(quoted(name), quoted(name.title()))
    return text


def _rewritten(event: DdlEvent, text_of: Callable[[str], str], name_of: Callable[[Name], Name]) -> DdlEvent:
    records = tuple(
        (
            name_of((database, ""))[0],
            text_of(text),
            tuple(replace(change, name=name_of(change.name)) for change in changes),
        )
        for database, text, changes in event.records
    )
    return replace(event, statement=text_of(event.statement), name=name_of(event.name), records=records)
