# SPDX-License-Identifier: Apache-2.0
"""Decode OceanBase OMS, serialization method DefaultExtendColumnType (docs/wire/oceanbase-oms.md 3)."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.oms import oms_default
from airflow_provider_cdc.core.formats.oms.evidence import of_default_extended


class WireFormat(oms_default.WireFormat):
    """``oms-default-extended``: Default whose images name the types of their columns in ``__light_type``."""

    name = "oms-default-extended"
    summary = "OceanBase OMS, method DefaultExtendColumnType"
    evidence = staticmethod(of_default_extended)
    carries = frozenset({"rows", "ddl", "progress", "types"})
    light_types = True
