# SPDX-License-Identifier: Apache-2.0
"""Read the options of a sink of Iceberg tables: which catalog it is, and how its tables are named there."""

from __future__ import annotations

import re
from collections.abc import Mapping

PREFIX = "iceberg."
"""Begins the names of options that are properties of pyiceberg's catalog."""

# options of an object store by delta-rs' names -> pyiceberg's
_STORE = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token",
    "AWS_REGION": "s3.region",
    "AWS_DEFAULT_REGION": "s3.region",
}
_FLAT = ("sql", "glue")  # catalogs whose namespaces have one level
_ESCAPED = re.compile(r"(?:~[0-9A-F]{2})+")


def catalog_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return pyiceberg's properties of the catalog that a sink's options name, secrets included."""
    store = {_STORE[name]: value for name, value in options.items() if name in _STORE and value}
    own = {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}
    return {"name": "cdc", **store, **own}


def store_options_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the object store that properties of a catalog or a table name, secrets included."""
    options = {name: properties[own] for name, own in _STORE.items() if properties.get(own)}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def identifier_of(location: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the name that the table of a location has in the catalog.

    :param location: ``<root>/<database>/<table>``, both escaped as parts of paths.
    """
    levels = [part for part in options.get("namespace", "").split(".") if part]
    database, table = (_ESCAPED.sub(_unescaped, part) for part in location.rsplit("/", 2)[-2:])
    if options.get(f"{PREFIX}type") in _FLAT:
        return "_".join([*levels, database]), table
    return *levels, database, table


def _unescaped(escaped: re.Match[str]) -> str:
    return bytes.fromhex(escaped[0].replace("~", "")).decode("utf-8", "surrogatepass")
