# SPDX-License-Identifier: Apache-2.0
"""Read a file with the schemas of a registry, for recorded records that name them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply


def stated_schemas(file: str | None) -> SchemaSupply:
    """Return what teaches a format the schemas of a file.

    :param file: path of a JSON list of ``{"id": …, "schema": "…", "schemaType"?: …}``; None for no schemas.
    :raises ConfigurationError: it cannot be read.
    """
    from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply

    known = {} if file is None else _read(file)
    return SchemaSupply(lambda ids: {identity: known.get(identity) for identity in ids})


def _read(file: str) -> dict[int, Mapping[str, Any]]:
    try:
        with open(file, encoding="utf-8") as stream:
            return {int(entry["id"]): {**entry, "schema": str(entry["schema"])} for entry in json.load(stream)}
    except OSError as error:
        raise ConfigurationError([f"cannot read {file}: {error.strerror or error}"]) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        text = f'{file}: is not a list of schemas: [{{"id": 1, "subject": "…", "schema": "…"}}, …]'
        raise ConfigurationError([text]) from None
