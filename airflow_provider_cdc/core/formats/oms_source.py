"""What the records of some OMS methods do not say of their source, and options therefore do."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.formats.oms_columns import is_oceanbase, speaks_oracle
from airflow_provider_cdc.core.values.zones import is_zone

OPTIONS: dict[str, str] = {
    "dbType": "OB_MYSQL | OB_ORACLE | MYSQL | ORACLE | DB2_LUW (default OB_MYSQL): the source, in OMS's words",
    "timezone": "zone of civil times of instants, an IANA name or an offset (default UTC)",
}
_OTHERS = frozenset({"MYSQL", "ORACLE", "DB2_LUW", "DB2"})


class Source:
    """The source's dialect and time zone, as options state them.

    :ivar oracle: whether types are Oracle's.
    :ivar zone: zone of civil times of instants.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        kind = options.get("dbType", "OB_MYSQL")
        self.oracle = speaks_oracle(kind)
        self.zone = options.get("timezone", "UTC")
        self.problems: list[str] = []
        if not is_oceanbase(kind) and kind.upper() not in _OTHERS:
            self.problems.append(f"source.options.dbType: {kind!r} is none of OMS's (OB_MYSQL, OB_ORACLE, MYSQL, ...)")
        if not is_zone(self.zone):
            self.problems.append(f"source.options.timezone: {self.zone!r} is no time zone")
