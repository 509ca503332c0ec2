# SPDX-License-Identifier: Apache-2.0
"""The probe of a sink: it says what a login may not do and what to do, and leaves nothing behind."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import OperationalError

from airflow_provider_cdc.core.config.sinks.iceberg_options import catalog_properties
from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.driver.probe import RIGHTS
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.sink import DeltaSink
from spark_jobs.sinks.delta.sink_errors import writing_error
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.services.process import free_port
from tests.services.refusing_server import RefusingServer
from tests.services.rest_catalog import shared_catalog
from tests.sinks.kinds import OPTIONS, options_of, type_of
from tests.sinks.probing import steps_of

DELTA = ("delta", "delta merge-on-read")
LOCAL_CATALOG = ("iceberg", "iceberg copy-on-write")
REST = ("iceberg rest", "iceberg at once")
KINDS = [kind for kind in OPTIONS if type_of(kind) in ("delta", "iceberg")]


def lies_in(root: Path) -> list[str]:
    """Return what lies in a folder; the file of a local catalog does not count."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.name != "catalog.db")


def tables_of(options: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """Return the namespaces of a catalog that a probe made, and their tables."""
    catalog = load_catalog(**catalog_properties(options))
    top = [name for name in catalog.list_namespaces() if name[0].startswith(options.get("namespace") or "_cdc")]
    below = (
        [inner for name in top for inner in catalog.list_namespaces(name)] if options["iceberg.type"] == "rest" else []
    )
    every = [*top, *below]
    return every, [table for name in every for table in catalog.list_tables(name)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sink_that_works_passes_and_is_as_before(kind: str, tmp_path: Path) -> None:
    root, options = tmp_path / "lake", options_of(kind, tmp_path / "lake")
    root.mkdir()
    assert steps_of(kind, str(root), options) == {"create": None, "merge": None, "remove": None}
    assert lies_in(root) == []
    if type_of(kind) == "iceberg":
        assert tables_of(options) == ([], [])


@pytest.mark.parametrize("kind", [*DELTA, *REST])
def test_a_root_that_was_not_there_is_not_there_afterwards(kind: str, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path / "a" / "b")
    assert set(steps_of(kind, str(tmp_path / "a" / "b"), options).values()) == {None}
    assert lies_in(tmp_path) == []


@pytest.mark.parametrize("kind", [*DELTA, *LOCAL_CATALOG])
def test_tables_and_files_of_others_stay(kind: str, tmp_path: Path) -> None:
    (tmp_path / "shop" / "orders").mkdir(parents=True)
    (tmp_path / "shop" / "orders" / "part.parquet").write_text("rows")
    before = lies_in(tmp_path)
    steps_of(kind, str(tmp_path), options_of(kind, tmp_path))
    assert lies_in(tmp_path) == before


def test_the_merge_is_one_that_deletes_by_position_where_that_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = DeltaSink.remove

    def remove(sink: DeltaSink, target: Any) -> None:
        seen.extend(path.name for path in tmp_path.rglob("deletion_vector*"))
        real(sink, target)

    monkeypatch.setattr(DeltaSink, "remove", remove)
    steps_of("delta merge-on-read", str(tmp_path), options_of("delta merge-on-read", tmp_path))
    assert len(seen) == 1


# ---- what fails half way: files of it are written, and nothing is left of them


def fail(monkeypatch: pytest.MonkeyPatch, holder: type[Any], name: str, error: Exception, *, behind: int = 0) -> None:
    """Let a method fail, but the first times."""
    real, calls = getattr(holder, name), count()

    def method(*arguments: Any, **more: Any) -> Any:
        if next(calls) >= behind:
            raise error
        return real(*arguments, **more)

    monkeypatch.setattr(holder, name, method)


FULL = OSError(errno.ENOSPC, "No space left on device")
READ_ONLY = OperationalError("UPDATE", {}, Exception("attempt to write a readonly database"))


@pytest.mark.parametrize("behind", [0, 1])
@pytest.mark.parametrize("kind", [*DELTA, *LOCAL_CATALOG])
def test_a_commit_that_is_refused_leaves_nothing(
    kind: str, behind: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, options = ("create", "merge")[behind], options_of(kind, tmp_path)
    written: list[str] = []
    real = Storage.delete_folder

    def delete_folder(storage: Storage, name: str, *, traces: bool = False) -> None:
        written.extend(lies_in(tmp_path))
        real(storage, name, traces=traces)

    monkeypatch.setattr(Storage, "delete_folder", delete_folder)
    if type_of(kind) == "delta":
        fail(monkeypatch, DeltaLocation, "guarded", as_refused(str(tmp_path)), behind=behind)
    else:
        fail(monkeypatch, SqlCatalog, "commit_table", READ_ONLY, behind=behind)
    steps = steps_of(kind, str(tmp_path), options)
    assert [name for name, problem in steps.items() if problem] == [failed]
    assert list(steps)[-1] == "remove"
    assert RIGHTS[failed] in str(steps[failed])
    assert any(name.endswith(".parquet") for name in written)
    assert lies_in(tmp_path) == []
    if type_of(kind) == "iceberg":
        assert tables_of(options) == ([], [])


def as_refused(location: str) -> UnavailableError:
    """Return what a store's refusal of a commit becomes."""
    error = writing_error(OSError("Generic LocalFileSystem error: Permission denied (os error 13)"), location, {})
    assert isinstance(error, UnavailableError)
    return error


@pytest.mark.parametrize("kind", [*DELTA, *LOCAL_CATALOG])
def test_files_that_cannot_be_deleted_are_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError) as refused, Storage(str(tmp_path)).access("a folder"):
        raise PermissionError(errno.EACCES, "Permission denied")
    with monkeypatch.context() as patch:
        fail(patch, Storage, "delete_folder", refused.value)
        steps = steps_of(kind, str(tmp_path), options_of(kind, tmp_path))
    assert [name for name, problem in steps.items() if problem] == ["remove"]
    named = re.search(r"then remove (/.*) by hand", str(steps["remove"]))
    assert named
    assert RIGHTS["remove"] in str(steps["remove"])
    assert Path(named[1]).is_dir()


def test_a_full_disk_is_not_taken_for_a_missing_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, Storage, "create", FULL)
    steps = steps_of("delta", str(tmp_path), {})
    assert "No space left" in str(steps["create"])
    assert "the disk" in str(steps["create"])
    assert lies_in(tmp_path) == []


# ---- refusals of a catalog


@pytest.fixture
def catalog() -> Iterator[RefusingServer]:
    server = RefusingServer(shared_catalog().uri)
    yield server
    server.stop()


_COMMITS = r"POST /v1/(namespaces/[^/ ]+/tables/|transactions)"
# what is refused, how many of it pass, in which kinds, the step that fails
REFUSALS = (
    (r"POST /v1/namespaces ", 0, REST, "create"),
    (r"POST /v1/namespaces/[^/ ]+/tables ", 0, REST, "create"),
    (_COMMITS, 0, REST, "create"),
    (_COMMITS, 1, ["iceberg rest"], "merge"),
    (_COMMITS, 2, ["iceberg at once"], "merge"),
    (r"DELETE /v1/namespaces/[^/ ]+/tables/", 0, REST, "remove"),
)


@pytest.mark.parametrize(
    ("kind", "pattern", "behind", "failed"),
    [(kind, pattern, behind, failed) for pattern, behind, kinds, failed in REFUSALS for kind in kinds],
)
def test_what_a_catalog_refuses_is_named_with_the_right_that_is_missing(
    kind: str, pattern: str, behind: int, failed: str, catalog: RefusingServer, tmp_path: Path
) -> None:
    options = options_of(kind, tmp_path)
    catalog.refuse(pattern, behind=behind)
    steps = steps_of(kind, str(tmp_path), {**options, "iceberg.uri": catalog.endpoint})
    assert [name for name, problem in steps.items() if problem] == [failed]
    assert catalog.refused
    assert "Forbidden" in str(steps[failed]) or "403" in str(steps[failed])
    assert RIGHTS[failed] in str(steps[failed])
    if failed == "remove":
        (table,) = tables_of(options)[1]
        assert f"{table[-2]}/probe by hand" in str(steps["remove"])
    else:
        assert tables_of(options) == ([], [])
        assert lies_in(tmp_path) == []


def test_a_catalog_that_cannot_commit_a_batch_at_once_says_so(catalog: RefusingServer, tmp_path: Path) -> None:
    options = options_of("iceberg at once", tmp_path)
    catalog.refuse(r"POST /v1/transactions", "404 Not Found")
    steps = steps_of("iceberg at once", str(tmp_path), {**options, "iceberg.uri": catalog.endpoint})
    assert "sink.cannot" in str(steps["create"])
    assert "set sink.commit to table" in str(steps["create"])
    assert (tables_of(options), lies_in(tmp_path)) == (([], []), [])


def test_a_commit_that_meets_a_conflict_is_refused_by_the_catalog(catalog: RefusingServer, tmp_path: Path) -> None:
    options = options_of("iceberg rest", tmp_path)
    catalog.refuse(_COMMITS, "409 Conflict", behind=1)
    steps = steps_of("iceberg rest", str(tmp_path), {**options, "iceberg.uri": catalog.endpoint})
    assert "the catalog or the store refused the commit: see its log" in str(steps["merge"])
    assert (tables_of(options), lies_in(tmp_path)) == (([], []), [])


def test_a_catalog_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    options = {**options_of("iceberg rest", tmp_path), "iceberg.uri": f"http://127.0.0.1:{free_port()}"}
    steps = steps_of("iceberg rest", str(tmp_path), options)
    assert list(steps) == ["create"]
    assert "sink.unavailable" in str(steps["create"])
    assert "check the address in the connection" in str(steps["create"])
    assert "\n" not in str(steps["create"])
