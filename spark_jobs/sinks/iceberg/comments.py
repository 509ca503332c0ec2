# SPDX-License-Identifier: Apache-2.0
"""Say which comments a catalog can hold, and keep that of a table in its property."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyiceberg.catalog import Catalog

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.model.table_comments import TableComments
from spark_jobs.sinks.table_properties import PropertyChange

_COMMENT = "comment"
_GLUE_LONGEST = 255  # characters of a column's comment, in one line; Glue refuses the whole commit of others
_GLUE_REFUSES = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ufffe\uffff]")


def holdable(columns: TargetSchema, catalog: Catalog) -> TargetSchema:
    """Return columns with the comments that a catalog can hold."""
    if catalog.properties.get("type") != "glue":
        return columns
    said = {name: _GLUE_REFUSES.sub(" ", text)[:_GLUE_LONGEST] for name, text in columns.comments.columns.items()}
    return replace(columns, comments=TableComments(columns.comments.table, said))


def with_comment(change: PropertyChange, stored: Mapping[str, str], columns: TargetSchema) -> PropertyChange:
    """Return a change of properties with that of the table's comment; one that a rule states counts.

    :param stored: the table's properties.
    """
    text = columns.comments.table
    if text is None or _COMMENT in columns.layout.properties:
        return change
    if (change.applied_to(stored).get(_COMMENT) or "") == text:
        return change
    updates = {name: value for name, value in change.updates.items() if name != _COMMENT}
    removals = [name for name in change.removals if name != _COMMENT]
    return (
        PropertyChange({**updates, _COMMENT: text}, removals)
        if text
        else PropertyChange(updates, [*removals, _COMMENT])
    )
