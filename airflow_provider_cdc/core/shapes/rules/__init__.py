# SPDX-License-Identifier: Apache-2.0
"""The kinds of rules for columns, in the order in which they are carried out."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.shapes.columns import ColumnRule
from airflow_provider_cdc.core.shapes.rules.add import add
from airflow_provider_cdc.core.shapes.rules.exclude import exclude
from airflow_provider_cdc.core.shapes.rules.mask import mask
from airflow_provider_cdc.core.shapes.rules.metadata import metadata
from airflow_provider_cdc.core.shapes.rules.rename import rename
from airflow_provider_cdc.core.shapes.rules.retype import retype

RULES: Mapping[str, ColumnRule] = {
    "exclude": exclude,
    "mask": mask,
    "type": retype,
    "rename": rename,
    "add": add,
    "metadata": metadata,
}
"""By their key below ``columns``."""
