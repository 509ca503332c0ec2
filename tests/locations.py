# SPDX-License-Identifier: Apache-2.0
"""Say where tables lie below a root, and how positions in a binlog are written."""

from __future__ import annotations

from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.position import FILE_DIGITS, GENERATION_DIGITS, POS_DIGITS, ROW_DIGITS
from spark_jobs.lake.storage import path_part


def table_place(database: str, table: str) -> str:
    """Return the place below the root of the table that has this name now."""
    return f"{path_part(database)}/{path_part(table)}"


def table_location(root: str, database: str, table: str) -> str:
    """Return where the table that has this name now lies."""
    return located(root, table_place(database, table))


def binlog_position(file_number: int, pos: int, row: int = 0, *, generation: int = 0) -> str:
    """Encode a position in a binlog.

    :param file_number: number at the end of the binlog file's name (``mariadb-bin.000012`` -> 12).
    :param pos: byte offset of the event in the file.
    :param row: index of the row in the event.
    :param generation: how many times the source's log was restarted.
    :raises ValueError: a part is negative or too wide.
    """
    parts = ((generation, GENERATION_DIGITS), (file_number, FILE_DIGITS), (pos, POS_DIGITS), (row, ROW_DIGITS))
    texts = []
    for value, digits in parts:
        text = f"{value:0{digits}d}"
        if value < 0 or len(text) > digits:
            raise ValueError(f"position part {value} does not fit {digits} digits")
        texts.append(text)
    return ".".join(texts)
