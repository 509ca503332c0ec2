# SPDX-License-Identifier: Apache-2.0
"""Describe Delta tables by path under one root."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.config.lake import Lake, check_store
from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.config.sinks.names import WRITES, check_names
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.lake.roots import canonical_root
from airflow_provider_cdc.core.lake.store_kinds import lies_plainly

_OF_TABLES = ("writes", "names")
# properties that hold however the tables are written
_INTERVAL = re.compile(
    r"interval\s+\d{1,9}\s+(?:nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?", re.IGNORECASE
)
_KNOWN: Mapping[str, tuple[re.Pattern[str], str]] = {
    "delta.logRetentionDuration": (_INTERVAL, "expected an interval, as interval 30 days"),
    "delta.deletedFileRetentionDuration": (_INTERVAL, "expected an interval, as interval 7 days"),
    "delta.enableExpiredLogCleanup": (re.compile("true|false"), "expected true or false"),
    "delta.dataSkippingNumIndexedCols": (re.compile(r"-1|\d{1,4}"), "expected a number of columns, or -1 for all"),
}


@dataclass(frozen=True)
class DeltaSink:
    """Delta tables at ``root/<database>/<table>``.

    :param root: absolute local path, or ``file://``, ``s3://``, ``gs://``, ``abfss://``, ``hdfs://``; kept in its
        canonical spelling.
    :param storage_connection: Airflow connection of the object store, with its address and secrets: ``aws``,
        ``google_cloud_platform``, ``wasb`` or ``adls``.
    :param storage_options: further options of the store; no secrets.
    :param writes: whether a merge writes the files of its rows again (``copy-on-write``), or deletes rows by their
        positions in deletion vectors (``merge-on-read``), which not all readers can read.
    :param type: kind of the tables (``kinds.SINKS``).
    :param register: catalog that the tables are registered in after a batch; plain data of one is accepted.
    :param names: whether databases and tables are named as the source spells them (``exact``), or in lower case of
        letters, digits and underscores (``safe``); None for ``exact``.
    """

    root: str
    storage_connection: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict)
    writes: str = "copy-on-write"
    type: str = "delta"
    register: Register | None = None
    names: str | None = None
    catalog = None
    partitions = False

    def __post_init__(self) -> None:
        checks = Checks("sink")
        check_store(checks, self.root, self.storage_connection, self.storage_options)
        if not lies_plainly(str(self.root)):
            checks.problem("root", "of HDFS has neither spaces nor letters beyond ASCII: delta-rs finds no table there")
        checks.choice("writes", self.writes, WRITES)
        check_names(checks, self.names)
        checks.choice("type", self.type, [name for name, kind in SINKS.items() if kind.section == "DeltaSink"])
        try:
            object.__setattr__(self, "register", Register.of(self.register))
        except ConfigurationError as error:
            checks.problems += error.problems
        checks.raise_any()
        object.__setattr__(self, "root", canonical_root(self.root))
        object.__setattr__(self, "storage_options", {key: str(value) for key, value in self.storage_options.items()})

    def own_lake(self) -> Lake:
        """Return the lake of a pipeline that states none: with the tables, in the same store."""
        return Lake(self.root, self.storage_connection, dict(self.storage_options))

    def property_problem(self, name: str, value: str) -> str | None:
        """Return why the tables cannot have a property, None where they can."""
        return _property_problem(name, value)

    def options(self) -> dict[str, str]:
        """Return the options of the tables' kind that no connection holds."""
        writes = {} if self.writes == "copy-on-write" else {"writes": self.writes}
        return {**self.storage_options, **writes, **({"names": self.names} if self.names else {})}

    def naming(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return no options: a location names its table."""
        return {}

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def store_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a sink that are those of its object store."""
    return {name: value for name, value in options.items() if name not in _OF_TABLES}


def _property_problem(name: str, value: str) -> str | None:
    """Return why a Delta table cannot have a property, None where it can."""
    if name.lower().startswith("cdc."):
        return "names that begin with cdc. are the pipeline's own"
    if not name.lower().startswith("delta."):
        return None
    if name not in _KNOWN:
        return f"is not a property that every writer of the table keeps to; of those of Delta: {', '.join(_KNOWN)}"
    pattern, problem = _KNOWN[name]
    return None if pattern.fullmatch(value) else problem
