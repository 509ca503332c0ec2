# SPDX-License-Identifier: Apache-2.0
"""Answers of an object store that are cut off anywhere: the content or a passing fault, never other content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.apply.merge_plan import OpenRemovals
from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.lake import pending_deletes
from spark_jobs.lake.storage import Storage
from tests.faults.store import FailingStore, Fault, Weather
from tests.services.s3 import S3

DOCUMENT = {"numbers": list(range(50))}
ROWS = pa.table({"id": range(1000), "text": [str(number) for number in range(1000)]})
ROOT = "s3://lake/cut"


class CutOnce(Weather):
    """Cuts one answer of several.

    :param request: its number among the requests from now on.
    """

    def __init__(self, request: int, cut_at: int | bytes) -> None:
        super().__init__(cut_at=cut_at)
        self._left = request

    def strikes(self) -> Fault | None:
        self._left -= 1
        return "cut" if self._left == -1 else None


@pytest.fixture(scope="module")
def store(s3: S3) -> Iterator[FailingStore]:
    s3.create_bucket("lake")
    proxy = FailingStore(s3.endpoint)
    yield proxy
    proxy.stop()


@pytest.fixture(scope="module")
def lake(s3: S3, store: FailingStore) -> Callable[[], Storage]:
    """Return what opens the lake behind the proxy; it has a document and a parquet file."""
    whole = Storage(ROOT, dict(s3.storage_options))
    whole.write_json("a.json", DOCUMENT)
    positions = pa.array([f"{number:04d}" for number in range(1000)])
    pending_deletes.write(whole, "shop", "t", 1, OpenRemovals(ROWS, positions))
    return lambda: Storage(ROOT, {**s3.storage_options, "AWS_ENDPOINT_URL": store.endpoint})


def _pending_deletes(storage: Storage) -> pa.Table:
    with storage.open_file("_cdc/shop/debts/t/00000001.parquet") as file:
        return pq.read_table(file).replace_schema_metadata()


READERS: dict[str, tuple[Callable[[Storage], Any], Any]] = {
    "document": (lambda storage: storage.read_json("a.json"), DOCUMENT),
    "unfinished document": (lambda storage: storage.read_unfinished("a.json"), DOCUMENT),
    "parquet": (_pending_deletes, ROWS),
    "holds files": (lambda storage: storage.holds_files("_cdc"), True),
    "folders": (lambda storage: storage.folders("_cdc"), ["shop"]),
}


# the last: a length of which one digit arrives is another length
@pytest.mark.parametrize("cut_at", [0, 20, 100, 250, 400, 480, 600, 2000, b"Content-Length: "])
@pytest.mark.parametrize("request_number", range(3))
@pytest.mark.parametrize("what", READERS)
def test_a_cut_answer_is_no_content(
    what: str, request_number: int, cut_at: int | bytes, store: FailingStore, lake: Callable[[], Storage]
) -> None:
    read, content = READERS[what]
    store.weather = CutOnce(request_number, cut_at)
    try:
        assert read(lake()) == content
    except UnavailableError as error:
        assert error.code == "log.unavailable"
    finally:
        store.weather = Weather()
