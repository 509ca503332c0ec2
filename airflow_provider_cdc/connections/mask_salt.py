# SPDX-License-Identifier: Apache-2.0
"""Read the salt of masked columns from a connection."""

from __future__ import annotations

from airflow_provider_cdc.connections.lookup import find_connection, mask
from airflow_provider_cdc.core.errors import ConfigurationError

_TYPES = ("generic",)


def mask_settings(conn_id: str | None) -> dict[str, str]:
    """Return the salt of hashes, which is a secret; empty without a connection.

    :param conn_id: connection of type ``generic`` with a password.
    :raises ConfigurationError: it is not defined, or has no password.
    """
    if conn_id is None:
        return {}
    salt = find_connection(conn_id, _TYPES).password
    if not salt:
        raise ConfigurationError([f"connection {conn_id}: has no password; it is the salt of masked columns"])
    mask(salt)
    return {"salt": salt}
