# SPDX-License-Identifier: Apache-2.0
"""Read the connection of an Iceberg catalog into pyiceberg's properties."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError

TYPES = ("rest", "sql", "glue")
_ALLOWED = re.compile(
    r"type|name|uri|warehouse|scope|token|audience|resource|oauth2-server-uri|prefix|header\..+"
    r"|rest\.(sigv4-enabled|signing-region|signing-name)|(s3|glue|client|gcs|adls|hdfs|pool)\.[a-z0-9.-]+"
)
_CODE = re.compile(r"impl|resolver|signer$")  # names of classes, which pyiceberg would import


def catalog_properties(conn: Any, conn_id: str, mask: Callable[[str], None]) -> dict[str, str]:
    """Return the properties of a catalog, secrets included.

    :param conn: connection of type ``iceberg``: host is the catalog's address; login and password are a client's id and
        secret (``rest``), the database's (``sql``), or a key pair (``glue``). Extra holds ``type``, and any property of
        pyiceberg's catalogs under its own name.
    :param mask: masks a secret in Airflow's logs.
    :raises ConfigurationError: the connection names no catalog.
    """
    properties = {str(key): str(value) for key, value in dict(conn.extra_dejson).items() if value is not None}
    for key in properties:
        if not _ALLOWED.fullmatch(key) or _CODE.search(key):
            raise ConfigurationError([f"connection {conn_id}: {key!r} is not allowed in its extra"])
    address = (conn.host or "") + (f":{conn.port}" if conn.host and conn.port else "")
    if address and "uri" not in properties:
        properties["uri"] = address if "://" in address else f"https://{address}"
    kind = properties.setdefault("type", "rest" if properties.get("uri", "").startswith("http") else "sql")
    if kind not in TYPES:
        raise ConfigurationError([f"connection {conn_id}: type {kind!r} is not known; known: {', '.join(TYPES)}"])
    if kind != "glue" and "uri" not in properties:
        raise ConfigurationError([f"connection {conn_id}: names no address of the catalog"])
    for secret in (value for key, value in properties.items() if "secret" in key or "token" in key):
        mask(secret)
    login, password = conn.login or "", conn.password or ""
    if kind == "rest" and password:
        properties["credential"] = f"{login}:{password}" if login else password
        mask(properties["credential"])
    elif kind == "sql" and (login or password):
        from sqlalchemy.engine import make_url

        address = make_url(properties["uri"]).set(username=login or None, password=password or None)
        properties["uri"] = address.render_as_string(hide_password=False)
        mask(properties["uri"])
    elif kind == "glue" and login:
        properties |= {"glue.access-key-id": login, "glue.secret-access-key": password}
    return {f"iceberg.{key}": value for key, value in properties.items()}
