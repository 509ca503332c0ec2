# SPDX-License-Identifier: Apache-2.0
"""Write comments of columns and tables as Delta's readers find them: in metadata of columns, as the description."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable, Schema

from airflow_provider_cdc.core.model.table_comments import TableComments

_COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Said:
    """Hold what a table says of itself after a commit.

    :param columns: comments by the names of columns.
    :param description: of the table, empty for none.
    """

    columns: Mapping[str, str]
    description: str

    def on(self, schema: Schema) -> Schema:
        """Return columns with these comments and no others."""
        text = schema.to_json()
        if not self.columns and f'"{_COMMENT}"' not in text:
            return schema
        document = json.loads(text)
        for field in document["fields"]:
            metadata = {name: value for name, value in field["metadata"].items() if name != _COMMENT}
            comment = self.columns.get(field["name"])
            field["metadata"] = {**metadata, _COMMENT: comment} if comment else metadata
        return Schema.from_json(json.dumps(document))


def said_by(table: DeltaTable) -> Said:
    """Return what a table says of itself."""
    fields = json.loads(table.schema().to_json())["fields"]
    comments = {field["name"]: str(field["metadata"].get(_COMMENT, "")) for field in fields}
    return Said({name: text for name, text in comments.items() if text}, table.metadata().description or "")


def said_after(table: DeltaTable | None, names: Sequence[str], comments: TableComments) -> Said:
    """Return what a table says of itself after a commit.

    :param table: before it, None for a new one.
    :param names: of its columns then.
    """
    before = Said({}, "") if table is None else said_by(table)
    return Said(comments.of_columns(list(names), before.columns), comments.of_table(before.description))
