# SPDX-License-Identifier: Apache-2.0
"""Name the kinds of object stores that a lake may lie on, by the scheme of their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StoreKind:
    """A kind of object store.

    :param schemes: of its addresses, the one of the canonical spelling first.
    :param options: names of the options that its client takes, as delta-rs has them.
    :param secrets: names of options that are secrets.
    :param allow_http: name of the option that allows addresses without TLS.
    :param by_spark: whether the Spark writer reaches it.
    :param plain_paths: whether delta-rs finds tables at plain paths only: it encodes paths of HDFS as addresses, and
        looks for the code.
    """

    schemes: tuple[str, ...]
    options: tuple[str, ...]
    secrets: tuple[str, ...]
    allow_http: str = "allow_http"
    by_spark: bool = False
    plain_paths: bool = False

    def config(self, root: str, options: Mapping[str, str]) -> dict[str, str]:
        """Return what the client of the store takes of options, by its names.

        :param root: canonical; the host of an Azure address is the account's.
        """
        taken = {name.lower(): options[name] for name in self.options if options.get(name)}
        _, _, host = root.split("://", 1)[1].partition("/")[0].partition("@")
        return {"azure_storage_account_name": host.partition(".")[0], **taken} if host else taken

    def allows_http(self, options: Mapping[str, str]) -> bool:
        """Return whether an address without TLS may be used."""
        return options.get(self.allow_http, "").lower() == "true"


S3 = StoreKind(
    ("s3", "s3a"),
    (
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
    ),
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    allow_http="AWS_ALLOW_HTTP",
    by_spark=True,
)
GOOGLE = StoreKind(("gs",), ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"), ("GOOGLE_SERVICE_ACCOUNT_KEY",))
_AZURE_SECRETS = "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CLIENT_SECRET"
AZURE = StoreKind(
    ("abfss", "abfs"),
    (
        *_AZURE_SECRETS,
        *("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CLIENT_ID", "AZURE_STORAGE_TENANT_ID"),
        "AZURE_STORAGE_ENDPOINT",
    ),
    _AZURE_SECRETS,
)
HDFS = StoreKind(("hdfs",), (), (), plain_paths=True)
STORE_KINDS = (S3, GOOGLE, AZURE, HDFS)
STORE_SCHEMES: Mapping[str, StoreKind] = {scheme: kind for kind in STORE_KINDS for scheme in kind.schemes}
STORE_SECRETS = tuple(name for kind in STORE_KINDS for name in kind.secrets)


def lies_plainly(address: str) -> bool:
    """Return whether delta-rs finds a table there."""
    kind = store_kind(address)
    return kind is None or not kind.plain_paths or (address.isascii() and " " not in address)


def store_kind(root: str) -> StoreKind | None:
    """Return the kind of store that a canonical root is on, None of a local path."""
    return STORE_SCHEMES.get(root.partition("://")[0])
