# SPDX-License-Identifier: Apache-2.0
"""The class of a table's error follows from what it is: texts of delta-rs, pyarrow, object stores and Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.sink_errors import Cause, cause_of, spark_error, writing_error
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter

ERRORS: list[tuple[Cause, BaseException]] = [
    (Cause.CONFLICT, CommitFailedError("Failed to commit transaction: 0")),
    (Cause.CONFLICT, CommitFailedError("Failed to commit transaction: Metadata changed since last commit.")),
    (Cause.CONFLICT, DeltaError("A Delta Lake table already exists at that location.")),
    (Cause.CONFLICT, Exception("io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND]")),
    (Cause.REFUSED, CommitFailedError("The transaction includes Remove action … but Delta table is append-only")),
    (Cause.REFUSED, CommitFailedError("Unsupported table features required: [RowTracking]")),
    (Cause.REFUSED, DeltaError("Generic DeltaTable error: External error: … 1 rows failed validation check.")),
    (Cause.REFUSED, DeltaError("Column mapping is not supported for write operation 'WRITE' yet")),
    (Cause.REFUSED, Exception("[DELTA_CANNOT_MODIFY_APPEND_ONLY] This table is configured to only allow appends.")),
    (Cause.REFUSED, Exception("[DELTA_UNSUPPORTED_FEATURES_FOR_WRITE] Unsupported Delta write feature")),
    (Cause.UNFIT, Exception("[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform Merge")),
    (Cause.MISSING, FileNotFoundError("/lake/shop/t/part.parquet")),
    (Cause.MISSING, DeltaError("Object at location /lake/t/part.parquet not found: No such file or directory")),
    (Cause.DAMAGED, OSError("Generic LocalFileSystem error: Unable to open file: Is a directory (os error 21)")),
    (Cause.DAMAGED, DeltaError("Parquet error: Invalid Parquet file. Size is smaller than footer")),
    (Cause.PASSING, OSError(28, "No space left on device")),
    (Cause.PASSING, OSError("When reading information for key 'x': AWS Error NETWORK_CONNECTION during HeadObject")),
    (Cause.PASSING, DeltaError("Generic S3 error: Error performing PUT https://store in 3.2s, after 10 retries")),
    (Cause.PASSING, CommitFailedError("Transaction failed: Generic S3 error: HTTP error: error sending request")),
    (Cause.PASSING, CommitFailedError("Log storage error: Generic LocalFileSystem error: (os error 13)")),
    (Cause.OTHER, DeltaError("Schema error: Fail to merge schema")),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "error"), ERRORS, ids=lambda value: str(value)[:60])
def test_the_cause_is_read_from_the_text(cause: Cause, error: BaseException) -> None:
    assert cause_of(error) is cause
    assert isinstance(writing_error(error, "/lake/t", {}), UnavailableError) == (
        cause in (Cause.CONFLICT, Cause.PASSING)
    )


def test_an_error_of_spark_is_one_line_and_passing_unless_it_is_known() -> None:
    lost = spark_error(Exception("An error occurred while calling o9.sql.\n: ExecutorLostFailure"), "/lake/t")
    assert (lost.code, isinstance(lost, UnavailableError), "\n" in str(lost)) == ("sink.write_failed", True, False)
    text = "An error occurred while calling o9.sql.\n: x.Y: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK c\n - 9"
    refused = spark_error(Exception(text), "/lake/t")
    assert (refused.code, isinstance(refused, SinkError), "\n" in str(refused)) == ("sink.refused", True, False)
    assert "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" in str(refused) and "9" not in str(refused).replace("o9", "")
    twice = spark_error(Exception("[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] two rows"), "/lake/t")
    assert isinstance(twice, SinkError)


ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "v": ["a", "b"]})
NONE = ROWS.slice(0, 0).select(["id"])


def _do(location: Path, verb: Any, rows: pa.Table, seq: int = 2) -> None:
    action = Action(verb, Commit("a", seq, {"app": "a"}), rows, NONE, ["id"])
    TaskWriter().commit(DeltaLocation(str(location), {}), action)


@pytest.mark.parametrize("verb", ["merge", "overwrite"])
def test_a_table_that_may_only_grow_names_the_property(verb: str, tmp_path: Path) -> None:
    _do(tmp_path, "create", ROWS, 1)
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(SinkError, match=r"delta\.appendOnly = true") as caught:
        _do(tmp_path, verb, ROWS.slice(0, 1))
    assert caught.value.code == "sink.refused"
    _do(tmp_path, "append", ROWS)


@pytest.mark.parametrize("verb", ["append", "overwrite", "merge"])
def test_rows_that_break_a_constraint_are_refused_by_its_name_and_without_their_values(
    verb: str, tmp_path: Path
) -> None:
    _do(tmp_path, "create", ROWS, 1)
    DeltaTable(str(tmp_path)).alter.add_constraint({"small": "id < 4711"})
    with pytest.raises(SinkError, match=r"delta\.constraints\.small") as caught:
        _do(tmp_path, verb, pa.table({"id": pa.array([815815], pa.int64()), "v": ["c"]}))
    assert "815815" not in str(caught.value) and "\n" not in str(caught.value)
    _do(tmp_path, verb, pa.table({"id": pa.array([7], pa.int64()), "v": ["c"]}))
