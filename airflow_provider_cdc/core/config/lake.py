# SPDX-License-Identifier: Apache-2.0
"""Describe the lake: the folder of the change log and of all documents of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks, names_secret
from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.lake.store_kinds import S3, STORE_SCHEMES

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
ON_S3 = ("file", *S3.schemes)
SCHEMES = ("file", *STORE_SCHEMES)


@dataclass(frozen=True)
class Lake:
    """The folder of a pipeline's change log and documents, in ``root/_cdc/<pipeline>``.

    :param root: absolute local path, or ``file://``, ``s3://``, ``gs://``, ``abfss://``, ``hdfs://``; kept in its
        canonical spelling. Empty for the root of the tables.
    :param storage_connection: Airflow connection of the object store, with its address and secrets: ``aws``,
        ``google_cloud_platform``, ``wasb`` or ``adls``.
    :param storage_options: further options of the store; no secrets.
    """

    root: str = ""
    storage_connection: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.root == "" and self.storage_connection is None and self.storage_options == {}:
            return
        checks = Checks("lake")
        check_store(checks, self.root, self.storage_connection, self.storage_options)
        checks.raise_any()
        object.__setattr__(self, "root", canonical_root(self.root))
        object.__setattr__(self, "storage_options", {key: str(value) for key, value in self.storage_options.items()})

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def check_store(
    checks: Checks,
    root: object,
    connection: object,
    options: object,
    *,
    root_key: str = "root",
    schemes: Collection[str] = SCHEMES,
) -> None:
    """Check where files lie: a root, the connection of its store and further options of it.

    :param checks: of the section, takes the problems.
    :param schemes: that an address may have.
    """
    home = f"the connection named by {checks.section}.storage_connection"
    if checks.text(root_key, root):
        _check_root(checks, root_key, str(root), home, schemes)
    checks.connection("storage_connection", connection, optional=True)
    checks.options("storage_options", options, home=home)


def _check_root(checks: Checks, key: str, root: str, home: str, schemes: Collection[str]) -> None:
    if names_secret(key, root):
        checks.problem(key, f"carries a secret; it belongs in {home}")
        return
    parts = _URL.fullmatch(root)
    if parts is None:
        # The worker and Spark have different working directories: a relative path would name two folders.
        if not root.startswith("/"):
            checks.problem(key, f"{root!r} is neither an absolute path nor an address such as s3://bucket/lake")
    elif parts[1].lower() not in schemes:
        known = ", ".join(f"{scheme}://" for scheme in schemes)
        checks.problem(key, f"{parts[1]!r} is not a known scheme; known: a local path, {known}")
    elif not parts[2].strip("/") or (parts[1].lower() != "file" and parts[2].startswith("/")):
        checks.problem(key, f"{root!r} names no folder or bucket")
