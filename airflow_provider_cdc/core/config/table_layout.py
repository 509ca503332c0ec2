# SPDX-License-Identifier: Apache-2.0
"""Say how the files of a table lie, and what a table states of itself for those who read or maintain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Hold what a rule asks of a table apart from its rows.

    :param properties: of the table, by their names in its format.
    """

    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
