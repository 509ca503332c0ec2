# SPDX-License-Identifier: Apache-2.0
"""The S3 service serves delta-rs and pyarrow alike."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.services.s3 import S3


def test_delta_and_pyarrow_see_the_same_bucket(s3: S3) -> None:
    root = s3.create_bucket("services-round-trip")
    write_deltalake(f"{root}/table", pa.table({"id": [1, 2]}), storage_options=s3.storage_options)
    write_deltalake(f"{root}/table", pa.table({"id": [3]}), mode="append", storage_options=s3.storage_options)
    table = DeltaTable(f"{root}/table", storage_options=s3.storage_options)
    assert table.version() == 1
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
    assert s3.filesystem.get_file_info("services-round-trip/table/_delta_log/00000000000000000001.json").is_file
