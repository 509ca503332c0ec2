# SPDX-License-Identifier: Apache-2.0
"""Decode Huawei DRS's format JSON (docs/wire/huawei-drs.md 3)."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.formats.drs.evidence import of_json
from airflow_provider_cdc.core.formats.drs.messages import DrsFormat
from airflow_provider_cdc.core.formats.drs.options import DIALECT
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding


class WireFormat(DrsFormat):
    """``drs-json``: a DELETE's row stands in ``old``, TIMESTAMP is an instant in seconds."""

    name = "drs-json"
    summary = "Huawei DRS, JSON (MySQL, TaurusDB, DDM)"
    evidence = staticmethod(of_json)
    options: Mapping[str, str] = {"dialect": DIALECT}
    deleted_in = "old"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(options or {})

    def _timestamp(self, name: str) -> Encoded:
        return Encoded(name, Encoding.EPOCH_SECONDS)
