# SPDX-License-Identifier: Apache-2.0
"""Describe a table that has a column more."""

from __future__ import annotations

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.system.ground import INT, TEXT

WIDER = TableSchema((Column(1, "id", INT, False), Column(2, "v", TEXT), Column(3, "w", ColumnType("int"))), (1,))
