# SPDX-License-Identifier: Apache-2.0
"""Check the options of OMS's methods."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_problems

SEQUENCE = "true | false (default true): as in the OMS task, whether changes carry their sequence"
TENANT = "name of the OceanBase tenant that stands before the database (default: whichever stands there)"
TIMEZONE = "zone between local times and instants, an IANA name or an offset (default UTC)"
NULL_IN_BOTH = (
    "null | unchanged (default null): what NULL in both images of an update means; newer OMS editions write it for a "
    "LOB that did not change"
)


DB_TYPE = (
    "source, in OMS's words: OB_MYSQL, OB_ORACLE, MYSQL, ORACLE, DB2_LUW, or the older OCEANBASE, OB_IN_ORACLE_MODE, "
    "DB2 (default OB_MYSQL)"
)
_SOURCES = frozenset({"OB_MYSQL", "OB_ORACLE", "MYSQL", "ORACLE", "DB2_LUW", "OCEANBASE", "OB_IN_ORACLE_MODE", "DB2"})


class OmsOptions:
    """Check and hold option values.

    :param sequenced: the value of ``sequenceEnabled`` where none is stated.
    :ivar sequenced: whether records carry a sequence, and so a position.
    :ivar zone: time zone of local times, None is UTC.
    :ivar tenant: the tenant whose name stands before the database, None where any does.
    :ivar source: ``dbType``, for methods whose records do not say it.
    :ivar stated_source: the same, None where the option is not stated.
    :ivar null_is_unchanged: whether NULL in both images of an update says that the column did not change.
    :raises ConfigurationError: an option has a value that is not known.
    """

    def __init__(self, options: Mapping[str, str], *, sequenced: bool) -> None:
        sequence = options.get("sequenceEnabled", "true" if sequenced else "false")
        null = options.get("null_in_both", "null")
        self.zone = options.get("timezone")
        self.tenant = options.get("tenant")
        self.stated_source = options.get("dbType")
        self.source = self.stated_source or "OB_MYSQL"
        problems = timezone_problems(options)
        if sequence not in ("true", "false"):
            problems.append(f"source.options.sequenceEnabled: {sequence!r} is not one of true, false")
        if null not in ("null", "unchanged"):
            problems.append(f"source.options.null_in_both: {null!r} is not one of null, unchanged")
        if self.source not in _SOURCES:
            problems.append(f"source.options.dbType: {self.source!r} is not one of {', '.join(sorted(_SOURCES))}")
        if self.tenant is not None and (not self.tenant or "." in self.tenant):
            problems.append(f"source.options.tenant: {self.tenant!r} is not the name of a tenant")
        if problems:
            raise ConfigurationError(problems)
        self.sequenced = sequence == "true"
        self.null_is_unchanged = null == "unchanged"
