# SPDX-License-Identifier: Apache-2.0
"""Keep the properties of a stored table as its rule states them; those that somebody else set stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OWN = "cdc.properties"
"""Property with those that were set by us, and to what."""


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Name what a commit changes of a table's properties.

    :param updates: to set, by name.
    :param removals: names of those that go.
    """

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.updates or self.removals)

    def applied_to(self, stored: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the properties that a table has then."""
        return {**{name: value for name, value in stored.items() if name not in self.removals}, **self.updates}


def property_change(
    stored: Mapping[str, str | None], stated: Mapping[str, str], first: Mapping[str, str] | None = None
) -> PropertyChange:
    """Return what has to change so that a table has the properties that its rule states.

    A property that the rule states no longer goes, if it has the value that was set by us.

    :param stored: the table's.
    :param first: those that each new table of ours has; they come back in place of what goes.
    """
    own: dict[str, str] = json.loads(stored.get(OWN) or "{}")
    updates = {name: value for name, value in stated.items() if stored.get(name) != value}
    gone = [name for name, value in own.items() if name not in stated and stored.get(name) == value]
    updates |= {name: value for name, value in (first or {}).items() if name in gone}
    now = {name: value for name, value in stated.items() if name in updates or name in own}
    if now != own and now:
        updates[OWN] = json.dumps(now, sort_keys=True)
    removals = [name for name in gone if name not in updates]
    return PropertyChange(updates, [*removals, OWN] if own and not now else removals)
