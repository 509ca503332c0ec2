# SPDX-License-Identifier: Apache-2.0
"""Describe the sink: Delta tables by path under one root."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks, names_secret
from airflow_provider_cdc.core.config.sink_kinds import SINKS
from airflow_provider_cdc.core.lake.roots import canonical_root

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
SCHEMES = ("file", "s3", "s3a")


@dataclass(frozen=True)
class DeltaSink:
    """Delta tables at ``root/<database>/<table>``.

    :param root: absolute local path, or ``file://``, ``s3://``, ``s3a://``; kept in its canonical spelling.
    :param storage_connection: Airflow connection of type ``aws`` with the object store's address and secrets.
    :param storage_options: further options of the store; no secrets.
    :param type: kind of the tables (``sink_kinds.SINKS``).
    """

    root: str
    storage_connection: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict)
    type: str = "delta"

    def __post_init__(self) -> None:
        checks = Checks("sink")
        if checks.text("root", self.root):
            self._check_root(checks)
        checks.connection("storage_connection", self.storage_connection, optional=True)
        checks.choice("type", self.type, tuple(SINKS))
        checks.options("storage_options", self.storage_options, home="the connection named by sink.storage_connection")
        checks.raise_any()
        object.__setattr__(self, "root", canonical_root(self.root))
        object.__setattr__(self, "storage_options", {key: str(value) for key, value in self.storage_options.items()})

    def _check_root(self, checks: Checks) -> None:
        if names_secret("root", self.root):
            checks.problem("root", "carries a secret; it belongs in the connection named by sink.storage_connection")
            return
        parts = _SCHEME.fullmatch(self.root)
        if parts is None:
            # The worker and Spark have different working directories: a relative path would name two folders.
            if not self.root.startswith("/"):
                checks.problem(
                    "root", f"{self.root!r} is neither an absolute path nor an address such as s3://bucket/lake"
                )
        elif parts[1].lower() not in SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            checks.problem("root", f"{parts[1]!r} is not a known scheme; known: a local path, {known}")
        elif not parts[2].strip("/") or (parts[1].lower() != "file" and parts[2].startswith("/")):
            checks.problem("root", f"{self.root!r} names no folder or bucket")

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "type": self.type,
            "root": self.root,
            "storage_connection": self.storage_connection,
            "storage_options": dict(self.storage_options),
        }
