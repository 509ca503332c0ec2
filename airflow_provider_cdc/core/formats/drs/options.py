# SPDX-License-Identifier: Apache-2.0
"""Check the option that DRS's formats have in common."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.errors import ConfigurationError

DIALECT = "mysql | oracle (default mysql): the source's dialect of DDL, which no record states"
_DIALECTS = ("mysql", "oracle")


def dialect_of(options: Mapping[str, str]) -> str:
    """Return the dialect of DDL, as :func:`core.ddl.parser.parse` takes it.

    :raises ConfigurationError: the option has another value.
    """
    dialect = options.get("dialect", "mysql")
    if dialect not in _DIALECTS:
        raise ConfigurationError([f"source.options.dialect: {dialect!r} is not one of {', '.join(_DIALECTS)}"])
    return dialect
