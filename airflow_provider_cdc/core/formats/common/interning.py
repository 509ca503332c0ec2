# SPDX-License-Identifier: Apache-2.0
"""Intern values: give each distinct value a small integer, in the order in which they are first seen."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)


class Interner(Generic[V]):
    """Number distinct values, such as ``columns`` texts: they are long and repeat, so changes refer to them by number.

    :ivar values: the distinct values by number; only ever appended to.
    """

    def __init__(self) -> None:
        self.values: list[V] = []
        self._ids: dict[V, int] = {}

    def id_of(self, value: V) -> int:
        """Return the number of a value, a new one if it was not seen before."""
        number = self._ids.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number
