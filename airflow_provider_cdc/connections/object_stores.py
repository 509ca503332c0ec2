# SPDX-License-Identifier: Apache-2.0
"""Read the connections of object stores: each type as the hooks of its Airflow provider do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_cdc.connections.lookup import EnvironmentConnection

Options = dict[str, str]
Extra = Callable[[Iterable[str]], dict[str, Any]]

_S3 = {
    "endpoint_url": "AWS_ENDPOINT_URL",
    "region_name": "AWS_REGION",
    "region": "AWS_REGION",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_AZURE = ("tenant_id", "sas_token")
_GOOGLE = ("key_path", "keyfile_dict")
_GOOGLE_UNUSED = ("project", "scope", "num_retries")  # of the provider's own hooks


def _s3(conn: Connection | EnvironmentConnection, conn_id: str, extra: Extra) -> Options:
    """Return options of S3: login and password are the key pair; without, the environment's own credentials hold."""
    options = {_S3[key]: str(value) for key, value in extra(_S3).items() if value}
    if conn.login:
        options["AWS_ACCESS_KEY_ID"] = conn.login
    if conn.password:
        options["AWS_SECRET_ACCESS_KEY"] = conn.password
    if bool(conn.login) != bool(conn.password):
        raise ConfigurationError([f"connection {conn_id}: login and password are the key pair; one of them is missing"])
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    # Two writers of one table: the store's conditional put decides, no lock table is needed.
    options["aws_conditional_put"] = "etag"
    return options


def _google(conn: Connection | EnvironmentConnection, conn_id: str, extra: Extra) -> Options:
    """Return options of Google Cloud Storage: a key file or its content; without, the environment's own credentials."""
    prefix = "extra__google_cloud_platform__"  # of connections that were made before Airflow 2.3
    allowed = [*_GOOGLE, *_GOOGLE_UNUSED]
    stated = {
        key.removeprefix(prefix): value for key, value in extra([*allowed, *map(prefix.__add__, allowed)]).items()
    }
    options = {}
    if path := stated.get("key_path"):
        options["GOOGLE_SERVICE_ACCOUNT"] = str(path)
    if key := stated.get("keyfile_dict"):
        options["GOOGLE_SERVICE_ACCOUNT_KEY"] = key if isinstance(key, str) else json.dumps(key)
    if len(options) > 1:
        raise ConfigurationError([f"connection {conn_id}: key_path and keyfile_dict are the same key; state one"])
    return options


def _azure(conn: Connection | EnvironmentConnection, conn_id: str, extra: Extra) -> Options:
    """Return options of Azure Storage.

    With ``tenant_id`` login and password are an application's, else the account's name and key; or ``sas_token``.
    Without any of them the environment's own credentials hold, such as those of a managed identity.
    """
    stated = {key: str(value) for key, value in extra(_AZURE).items() if value}
    options: Options = {}
    if tenant := stated.get("tenant_id"):
        options["AZURE_STORAGE_TENANT_ID"] = tenant
        names = "AZURE_STORAGE_CLIENT_ID", "AZURE_STORAGE_CLIENT_SECRET"
    else:
        names = "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"
    options |= {name: value for name, value in zip(names, (conn.login, conn.password), strict=True) if value}
    if token := stated.get("sas_token"):
        if "://" in token:
            raise ConfigurationError([f"connection {conn_id}: sas_token is the token alone, without the address"])
        options["AZURE_STORAGE_SAS_TOKEN"] = token
    if conn.password and not conn.login:
        raise ConfigurationError([f"connection {conn_id}: names no login: the account, or the application's id"])
    host = conn.host or ""
    if "://" in host and ".core." not in host:  # an account's usual address follows from the root
        options["AZURE_STORAGE_ENDPOINT"] = host
        options |= {"allow_http": "true"} if host.startswith("http://") else {}
    return options


STORE_TYPES: Mapping[str, Callable[[Connection | EnvironmentConnection, str, Extra], Options]] = {
    "aws": _s3,
    "s3": _s3,
    "generic": _s3,
    "google_cloud_platform": _google,
    "wasb": _azure,
    "adls": _azure,
}
