# SPDX-License-Identifier: Apache-2.0
"""Build a batch of changes from Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Records


def change_batch(records: Records, record_index: IntArray, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return changes as :data:`CHANGE_SCHEMA`.

    :param record_index: index of each change's record among the records.
    :param columns: the other columns by name, also with texts that :data:`CHANGE_SCHEMA` has as dictionaries; what is
        not there is null.
    """
    count = len(record_index)
    where = pa.array(record_index, pa.int32())
    arrays: dict[str, Any] = {
        "topic": pa.repeat(pa.scalar(records.topic), count),
        "partition": pa.repeat(pa.scalar(records.partition, pa.int32()), count),
        "offset": pa.array(records.offsets, pa.int64()).take(where),
        "kafka_time": pa.array(records.timestamps, pa.int64()).take(where).cast(pa.timestamp("ms", "UTC")),
        **columns,
    }
    fields = []
    for field in CHANGE_SCHEMA:
        array = arrays.get(field.name)
        dictionary = pa.types.is_dictionary(field.type)
        if array is None:
            array = pa.nulls(count, pa.string() if dictionary else field.type)
        if dictionary and not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        fields.append(array)
    return pa.RecordBatch.from_arrays(fields, schema=CHANGE_SCHEMA)
