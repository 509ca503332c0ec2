# SPDX-License-Identifier: Apache-2.0
"""Teach formats the schemas that their records name, before the records are decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from airflow_provider_cdc.core.formats.contract import Format, Records, Registered

Answers = Mapping[int, Mapping[str, Any] | None]
"""Schemas by id as a registry answers, None for an id that it does not have."""

Fetch = Callable[[Collection[int]], Answers]
"""Returns the answers for these ids, from wherever the schemas are."""

F = TypeVar("F", bound=Format)


class SchemaSupply:
    """Fetch each schema once, for a format and those that are opened in its place.

    :param fetch: raises what a format's user is to know where the schemas cannot be had.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[int, Mapping[str, Any] | None] = {}

    def taught(self, fmt: F) -> F:
        """Return a format that was opened again, with what is known by now."""
        if isinstance(fmt, Registered):
            fmt.learn(self._known)
        return fmt

    def provide(self, fmt: Format, frames: Iterable[bytes | None]) -> None:
        """Teach a format the schemas that keys and values name."""
        if not isinstance(fmt, Registered):
            return
        missing = fmt.missing(frames)
        if missing:
            self._known |= self._fetch(missing - self._known.keys())
            fmt.learn({identity: self._known.get(identity) for identity in missing})

    def ahead_of(self, source: Iterable[Records], fmt: Format) -> Iterator[Records]:
        """Yield records once the format knows their schemas."""
        if not isinstance(fmt, Registered):
            yield from source
            return
        for records in source:
            self.provide(fmt, records.keys)
            self.provide(fmt, records.values)
            yield records
