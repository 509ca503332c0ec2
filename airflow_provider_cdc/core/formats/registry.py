# SPDX-License-Identifier: Apache-2.0
"""Open formats by name; modules are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.ddl.server import OPTIONS as SERVER_OPTIONS
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import ConfigurationError, KnownValuesError
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_problems

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Format

# name -> module with a class ``WireFormat(options)``
FORMATS = {
    "canal-json": "airflow_provider_cdc.core.formats.canal.canal_json",
    "canal-protobuf": "airflow_provider_cdc.core.formats.canal.canal_protobuf",
    "debezium-avro": "airflow_provider_cdc.core.formats.connect.debezium_avro",
    "debezium-json": "airflow_provider_cdc.core.formats.connect.debezium_json",
    "drs-avro": "airflow_provider_cdc.core.formats.drs.drs_avro",
    "drs-json": "airflow_provider_cdc.core.formats.drs.drs_json",
    "drs-json-c": "airflow_provider_cdc.core.formats.drs.drs_json_c",
    "dtle-json": "airflow_provider_cdc.core.formats.connect.dtle_json",
    "dts-protobuf": "airflow_provider_cdc.core.formats.dts.dts_protobuf",
    "oms-canal": "airflow_provider_cdc.core.formats.oms.oms_canal",
    "oms-dataworks": "airflow_provider_cdc.core.formats.oms.oms_dataworks",
    "oms-default": "airflow_provider_cdc.core.formats.oms.oms_default",
    "oms-default-extended": "airflow_provider_cdc.core.formats.oms.oms_default_extended",
    "oms-shareplex": "airflow_provider_cdc.core.formats.oms.oms_shareplex",
}

# of these the module decides how a batch is planned: it has groups of records (``contract.Grouped``), or ``prepare``
_DECIDE = frozenset({"drs-avro", "dts-protobuf"})
# these have the option ``timezone``, which is checked without the module
_IN_TIME_ZONES = frozenset(
    {
        "canal-json",
        "canal-protobuf",
        "debezium-avro",
        "debezium-json",
        "drs-json-c",
        "dtle-json",
        "oms-canal",
        "oms-dataworks",
        "oms-default",
        "oms-default-extended",
        "oms-shareplex",
    }
)
# of these a record's value alone says what happened, in one line of text: keys, times and headers may be missing
_VALUES_ALONE = frozenset({"debezium-json"})


def reads_values_alone(name: str) -> bool:
    """Return whether a format needs nothing of a record but its value."""
    return name in _VALUES_ALONE


def format_names() -> list[str]:
    """Return the registered names, sorted."""
    return sorted(FORMATS)


def open_format(name: str, options: Mapping[str, str] | None = None) -> Format:
    """Return the format with these options.

    :raises KnownValuesError: no such format.
    :raises ConfigurationError: an option is unknown or has a value the format does not know.
    """
    if name not in FORMATS:
        raise KnownValuesError("format", name, format_names())
    kind = importlib.import_module(FORMATS[name]).WireFormat
    own = _own_options(options or {})
    known = ", ".join(sorted({*kind.options, *SERVER_OPTIONS}))
    unknown = [
        f"source.options: unknown option {key!r} for {name}; known: {known}" for key in own if key not in kind.options
    ]
    if unknown:
        raise ConfigurationError(unknown)
    opened: Format = kind(own)
    return opened


def is_planned_unopened(name: str, options: Mapping[str, str]) -> bool:
    """Return whether a batch is planned without the format: it has no part in planning, and its options are checked.

    Importing a format and Arrow costs a quarter of a second, most of a small batch.

    :raises ConfigurationError: an option of the source's server has a value that it cannot have.
    """
    if name not in FORMATS or name in _DECIDE:
        return False
    own = _own_options(options)
    return not own or (name in _IN_TIME_ZONES and own.keys() == {"timezone"} and not timezone_problems(own))


def _own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are not of the source's server, which are checked."""
    Server.of(options)
    return {key: value for key, value in options.items() if key not in SERVER_OPTIONS}


def demand_options(name: str, options: Mapping[str, str]) -> None:
    """Demand a format that there is, with options that it has, also where nothing is to be read.

    :raises KnownValuesError: no such format.
    :raises ConfigurationError: an option is unknown or has a value that the format does not know.
    """
    if not is_planned_unopened(name, options):
        open_format(name, options)


def portable_options(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return options that hold on every machine: a module's ``prepare``, where it has one, reads the files they name.

    :raises ConfigurationError: a file cannot be read, or an option is missing.
    """
    if is_planned_unopened(name, options):
        return dict(options)
    prepare = getattr(importlib.import_module(FORMATS[name]), "prepare", dict)
    prepared: dict[str, str] = prepare(options)
    return prepared
