# SPDX-License-Identifier: Apache-2.0
"""Describe two plain tables and their rows, for histories that are written by hand."""

from __future__ import annotations

from tests.histories.kinds import Kind
from tests.histories.row_statements import Insert
from tests.histories.source import Column, Name, Structure

T: Name = ("shop", "t")
U: Name = ("shop", "u")
INT = Kind("int")
A, B = Column("a", INT, nullable=False), Column("b", INT)
KEYED, KEYLESS = Structure((A, B), ("a",)), Structure((A, B))


def rows(*keys: int) -> Insert:
    """Insert rows by key."""
    return Insert(T, tuple({"a": key, "b": key} for key in keys))
