# SPDX-License-Identifier: Apache-2.0
"""Writes events as OMS's DefaultExtendColumnType method does (docs/wire/oceanbase-oms.md 3)."""

from __future__ import annotations

import json

from airflow_provider_cdc.core.model.schema import ColumnType
from tests.cross_format import oms_default_writer
from tests.cross_format.events import Image, Row

_TYPES = {
    **{"tinyint": "TINYINT", "smallint": "SMALLINT", "mediumint": "INT", "int": "INT", "year": "INT"},
    **{"float": "FLOAT", "double": "DOUBLE", "decimal": "DECIMAL", "date": "DATE", "time": "TIME"},
    **{"datetime": "DATETIME", "timestamp": "TIMESTAMP"},
    **dict.fromkeys(("bit", "binary", "varbinary", "blob"), "BLOB"),
}


class Writer(oms_default_writer.Writer):
    """As Default, with the types of the columns in each image."""

    format = "oms-default-extended"

    def _image(self, row: Image | None, what: Row) -> str:
        if row is None:
            return "null"
        types = {column.name: {"schemaType": type_name(column.type)} for column in what.schema.columns}
        return super()._image(row, what)[:-1] + f',"__light_type":{json.dumps(types, ensure_ascii=False)}}}'


def type_name(kind: ColumnType) -> str:
    """Return OMS's name of a type: 64 bits are INT64, integers that need more BIGINT, all text VARCHAR."""
    if kind.name == "bigint":
        return "BIGINT" if kind.unsigned else "INT64"
    return _TYPES.get(kind.name, "VARCHAR")
