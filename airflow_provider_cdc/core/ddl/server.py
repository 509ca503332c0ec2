# SPDX-License-Identifier: Apache-2.0
"""Hold the settings of the source's server that its statements depend on and that no record states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.values.shared.zone_names import zone_named

# options of every format; those that are a variable of the server have its name
OPTIONS: Mapping[str, str] = {
    "lower_case_table_names": "0 or 1: 1 where the server stores names of databases and tables in lower case",
    "explicit_defaults_for_timestamp": "true or false, as the server has it: what a TIMESTAMP column without NULL and "
    "without DEFAULT is",
    "session_time_zone": "time_zone of the sessions that change tables, a name or an offset such as +08:00: what a "
    "date and time in a DEFAULT is",
    "server": "mysql or mariadb: how it converts stored values under ALTER TABLE, where no GTID of the log shows it",
}
_VALUES: Mapping[str, Mapping[str, Any]] = {
    "lower_case_table_names": {"0": False, "1": True},
    "explicit_defaults_for_timestamp": {"false": False, "true": True},
    "server": {"mysql": "mysql", "mariadb": "mariadb"},
}


@dataclass(frozen=True, slots=True)
class Server:
    """Hold the known settings of the source's server; None if the pipeline does not state one.

    :param lower_case_names: names in statements mean tables whose names are in lower case.
    :param explicit_timestamps: a TIMESTAMP column has no NOT NULL and no default that it does not state.
    :param kind: ``mysql`` or ``mariadb``.
    :param time_zone: name or offset of the zone of the sessions that change tables.
    """

    lower_case_names: bool | None = None
    explicit_timestamps: bool | None = None
    kind: str | None = None
    time_zone: str | None = None

    @staticmethod
    def of(options: Mapping[str, str]) -> Server:
        """Read the settings among a source's options.

        :raises ConfigurationError: an option has a value that the server's variable cannot have.
        """
        problems = [
            f"source.options.{name}: {options[name]!r} is not one of {', '.join(known)}"
            for name, known in _VALUES.items()
            if name in options and options[name] not in known
        ]
        zone = options.get("session_time_zone")
        if zone is not None and zone_named(zone) is None:
            problems.append(
                f"source.options.session_time_zone: {zone!r} is neither the name of a time zone nor an offset such as "
                "+08:00; if the server's time_zone is SYSTEM, state the zone of its machine"
            )
        if problems:
            raise ConfigurationError(problems)
        lower, explicit, kind = (known.get(options.get(name, "")) for name, known in _VALUES.items())
        return Server(lower, explicit, kind, zone)
