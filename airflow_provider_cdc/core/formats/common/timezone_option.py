# SPDX-License-Identifier: Apache-2.0
"""Check the option ``timezone``, which most formats have."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.values.shared.zone_names import zone_named


def timezone_problems(options: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the option's value, for formats that check further options; empty if it is valid."""
    zone = options.get("timezone")
    if zone is None or zone_named(zone) is not None:
        return []
    return [f"source.options.timezone: {zone!r} is neither the name of a time zone nor an offset such as +08:00"]


def timezone_of(options: Mapping[str, str] | None) -> str | None:
    """Return the option's value, None where it is not set.

    :raises ConfigurationError: it is neither the name of a time zone nor an offset.
    """
    problems = timezone_problems(options or {})
    if problems:
        raise ConfigurationError(problems)
    return (options or {}).get("timezone")
