# SPDX-License-Identifier: Apache-2.0
"""Define what registering a table needs of a catalog: an entry that is ours is made, changed and removed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.sinks.contract import StoredColumn

CALL_SECONDS = 10
"""Time that one call of a catalog may take."""

_SHOWN = 200
_ONE_SLASH = re.compile(r"file:(?=/(?!/))")


class CatalogName(NamedTuple):
    """Name of a table in a catalog; catalogs fold names, so it is in lower case."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as its entry shows it.

    :param location: canonical: a local path or ``s3://bucket/path``.
    :param comment: empty for none.
    """

    name: CatalogName
    location: str
    columns: tuple[StoredColumn, ...]
    comment: str = ""


class RegistrationError(Exception):
    """A catalog did not do what was asked; the text names no secret.

    :param passing: the catalog does not serve at the moment (away, slow, refuses the login), so that asking it for
        other tables is in vain, too; else it is this table's matter.
    """

    def __init__(self, text: str, *, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


class Registrar(Protocol):
    """Keeps entries of one catalog; each call may be repeated, also where the answer to an earlier one was lost.

    All raise RegistrationError, and no call takes much longer than ``CALL_SECONDS``.
    """

    def register(self, table: CatalogTable) -> None:
        """Let the catalog have the table, in a database that is created where it is missing.

        :raises RegistrationError: also where the entry of this name has another location: it is somebody else's.
        """
        ...

    def remove(self, name: CatalogName, location: str) -> bool:
        """Let the catalog have no entry of this name and location; return False for one with another location."""
        ...


def is_at(entry: str, location: str) -> bool:
    """Return whether a catalog's entry names a location, in whatever spelling of it."""
    if entry.startswith("file:"):
        entry = unquote(_ONE_SLASH.sub("file://", entry))
    return bool(entry) and canonical_root(entry) == location


def foreign(name: CatalogName, location: str) -> RegistrationError:
    """Return the error for an entry that has another location."""
    return RegistrationError(f"the catalog has {name} at {shown(location)}, which is not ours", passing=False)


def shown(text: str) -> str:
    """Return a text of a catalog as messages show it."""
    return printable(" ".join(text.split()))[:_SHOWN]
