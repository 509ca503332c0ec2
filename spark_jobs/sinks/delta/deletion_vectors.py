# SPDX-License-Identifier: Apache-2.0
"""Write deletion vectors: which rows of data files are gone, by their positions (Delta's protocol, "Deletion Vectors").

A file of vectors has one byte for its version, and then of each vector its size, the vector and a checksum. The vector
is a magic number and a 64-bit roaring bitmap in the portable form; rows of one file have one 32-bit bitmap in it.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from pyroaring import BitMap

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from spark_jobs.lake.storage import Storage

FEATURE = "deletionVectors"
_VERSION, _MAGIC = b"\x01", 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def deleted_rows(table: DeltaTable) -> dict[str, IntArray]:
    """Return the positions of the deleted rows of each data file that has some, by the file's name."""
    if FEATURE not in (table.protocol().reader_features or ()):
        return {}
    vectors = pa.table(table.deletion_vectors())
    names = (path.rsplit("/", 1)[1] for path in vectors.column("filepath").to_pylist())
    stays: list[BoolArray] = [mask.values.to_numpy(zero_copy_only=False) for mask in vectors.column("selection_vector")]
    return {name: np.flatnonzero(~mask) for name, mask in zip(names, stays, strict=True)}


def write_vectors(storage: Storage, deleted: Mapping[str, IntArray]) -> dict[str, dict[str, Any]]:
    """Write a file with the vectors of some data files; return what the log states of each.

    :param storage: folder of the table.
    :param deleted: positions of all deleted rows, by data file.
    """
    if not deleted:
        return {}
    mark = uuid.uuid4()
    content, descriptions = bytearray(_VERSION), {}
    for path, positions in deleted.items():
        vector = struct.pack("<iqi", _MAGIC, 1, 0) + BitMap(positions.astype(np.uint32)).serialize()
        descriptions[path] = {
            "storageType": "u",
            "pathOrInlineDv": z85(mark.bytes),
            "offset": len(content),
            "sizeInBytes": len(vector),
            "cardinality": len(positions),
        }
        content += struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    with storage.open_new(f"deletion_vector_{mark}.bin") as stream:
        stream.write(bytes(content))
    return descriptions


def z85(data: bytes) -> str:
    """Return bytes as text in the alphabet of ZeroMQ's RFC 32; four bytes are five characters."""
    text = ""
    for (number,) in struct.iter_unpack(">I", data):
        digits = [number // 85**power % 85 for power in (4, 3, 2, 1, 0)]
        text += "".join(_Z85[digit] for digit in digits)
    return text


def file_of(description: Mapping[str, Any]) -> str | None:
    """Return the name of the file that a vector is in, None for one in the log itself or outside the table's folder."""
    if description["storageType"] != "u":
        return None
    text = str(description["pathOrInlineDv"])
    prefix, encoded = text[:-20], text[-20:]
    numbers = []
    for start in range(0, 20, 5):
        number = 0
        for character in encoded[start : start + 5]:
            number = number * 85 + _Z85.index(character)
        numbers.append(number)
    name = f"deletion_vector_{uuid.UUID(bytes=struct.pack('>4I', *numbers))}.bin"
    return f"{prefix}/{name}" if prefix else name
