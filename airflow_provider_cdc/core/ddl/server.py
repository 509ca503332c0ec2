# SPDX-License-Identifier: Apache-2.0
"""Hold the settings of the source's server that its statements depend on and that no record states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_cdc.core.errors import ConfigurationError

# options of every format, named as the server's variables
OPTIONS: Mapping[str, str] = {
    "lower_case_table_names": "0 or 1: 1 where the server stores names of databases and tables in lower case",
    "explicit_defaults_for_timestamp": "true or false, as the server has it: what a TIMESTAMP column without NULL and "
    "without DEFAULT is",
}
_VALUES: Mapping[str, Mapping[str, bool]] = {
    "lower_case_table_names": {"0": False, "1": True},
    "explicit_defaults_for_timestamp": {"false": False, "true": True},
}


@dataclass(frozen=True, slots=True)
class Server:
    """Hold the known settings of the source's server; None if the pipeline does not state one.

    :param lower_case_names: names in statements mean tables whose names are in lower case.
    :param explicit_timestamps: a TIMESTAMP column has no NOT NULL and no default that it does not state.
    """

    lower_case_names: bool | None = None
    explicit_timestamps: bool | None = None

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
        if problems:
            raise ConfigurationError(problems)
        values = [known.get(options.get(name, "")) for name, known in _VALUES.items()]
        return Server(*values)
