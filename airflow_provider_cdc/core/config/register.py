# SPDX-License-Identifier: Apache-2.0
"""Describe the catalog that Delta tables are registered in after a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from string import Formatter
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks, kind_of
from airflow_provider_cdc.core.config.registrar_kinds import REGISTRARS
from airflow_provider_cdc.core.errors import ConfigurationError

_SECTION = "sink.register"


@dataclass(frozen=True)
class Register:
    """A catalog in which each table of the sink has an entry.

    :param type: kind of the catalog (``registrar_kinds.REGISTRARS``).
    :param connection: Airflow connection with the catalog's address and secrets.
    :param database: the catalog's database (schema) of a table; ``{database}`` stands for that of the target,
        which is that of the source unless a rule of ``target`` names the table.
    :param catalog: the catalog in it: of Glue an account's number, by default that of the connection.
    """

    type: str
    connection: str
    database: str = "{database}"
    catalog: str = ""

    def __post_init__(self) -> None:
        checks = Checks(_SECTION)
        checks.choice("type", self.type, REGISTRARS)
        checks.connection("connection", self.connection)
        if checks.text("database", self.database) and not _is_template(self.database):
            checks.problem("database", f"{self.database!r} may hold {{database}}, and no other braces")
        if self.catalog != "" or (self.type in REGISTRARS and REGISTRARS[self.type].needs_catalog):
            checks.text("catalog", self.catalog)
        checks.raise_any()

    @classmethod
    def of(cls, data: object) -> Register | None:
        """Build from plain data; None without any.

        :raises ConfigurationError: names all problems at once.
        """
        if data is None or isinstance(data, Register):
            return data
        if not isinstance(data, Mapping):
            raise ConfigurationError([f"{_SECTION}: expected a mapping, got {kind_of(data)}"])
        checks, known = Checks(_SECTION), [one.name for one in fields(cls)]
        checks.unknown(data, known)
        for key in ("type", "connection"):
            if key not in data:
                checks.problem(key, "is missing")
        checks.raise_any()
        return cls(**data)

    def database_of(self, database: str) -> str:
        """Return the catalog's database for one of the target."""
        return self.database.format(database=database)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def _is_template(text: str) -> bool:
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return False
    return all(name in (None, "database") and not spec and not conversion for _, name, spec, conversion in parts)
