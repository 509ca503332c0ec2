# SPDX-License-Identifier: Apache-2.0
"""Decode Huawei DRS's format JSON-C (docs/wire/huawei-drs.md 3)."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.formats.common.timezone_option import timezone_of
from airflow_provider_cdc.core.formats.drs.evidence import of_json_c
from airflow_provider_cdc.core.formats.drs.messages import DrsFormat
from airflow_provider_cdc.core.formats.drs.options import DIALECT
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding


class WireFormat(DrsFormat):
    """``drs-json-c``: a DELETE's row stands in ``data``, TIMESTAMP is local time in a zone that nothing states.

    Without the option ``timezone`` the values of TIMESTAMP columns are refused, since any zone would be a guess.
    """

    name = "drs-json-c"
    summary = "Huawei DRS, JSON-C (MySQL, TaurusDB, DDM)"
    evidence = staticmethod(of_json_c)
    options: Mapping[str, str] = {
        "dialect": DIALECT,
        "timezone": "time zone of TIMESTAMP values, e.g. Asia/Shanghai or +08:00; without it they are refused",
    }
    deleted_in = "data"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._zone = timezone_of(options)
        super().__init__(options or {})

    def _timestamp(self, name: str) -> Encoded:
        if self._zone is None:
            return Encoded(name, Encoding.ZONED_TEXT)
        return Encoded(name, Encoding.TEXT, zone=self._zone)
