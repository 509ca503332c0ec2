# SPDX-License-Identifier: Apache-2.0
"""Numbers of binlog files by name; a log names few files in millions of records."""

from __future__ import annotations

from airflow_provider_cdc.core.model.position import binlog_file_number


class FileNumbers(dict[str, int]):
    """``numbers[name]`` reads a name once.

    :raises ValueError: the name does not end in a number.
    """

    def __missing__(self, name: str) -> int:
        number = self[name] = binlog_file_number(name)
        return number
