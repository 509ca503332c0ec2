# SPDX-License-Identifier: Apache-2.0
"""Tables are rebuilt from files that an operator provides, and go on as if the log had had their rows."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_provider_cdc.core.documents import JobDocument, Rebuild, RebuildSource, TableLine, TableState
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.cases import case_of
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.run import Replay, described
from tests.histories.scripted import Script
from tests.histories.source import Picture
from tests.sample import amount

COLUMNS, KEY = {"id": "int", "v": "varchar"}, ("id",)
SECOND = 1_000_000


def change(op: str, pos: int, key: int, value: str | None = None, *, keyed: tuple[str, ...] = KEY) -> Record:
    """Return a row change; its time in seconds is its position."""
    image = {"id": key, "v": value}
    before = image if op == "d" else None
    return row(op, "t", pos, image if op != "d" else None, before=before, key=keyed, time=pos * 1_000)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, table="t", time=pos * 1_000)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return a table with rows 1 and 2 of which a statement at 150 left others unknown, and changes behind that."""
    return incomplete(Script(log, lake))


def incomplete(script: Script) -> Script:
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}, time=100_000))
    script.send(change("c", 110, 1, "a"), change("c", 120, 2, "b"))
    script.sync()
    script.send(statement("ALTER TABLE t DROP PARTITION p0", 150))
    script.send(change("u", 210, 1, "a2"), change("d", 220, 2), change("c", 230, 4, "d"))
    script.sync()
    assert script.states_of("shop", "t") == ["parked"]
    return script


def test_a_lake_with_a_root_of_its_own_has_all_but_the_tables(log: Log, tmp_path: Path) -> None:
    tables, apart = tmp_path / "tables", tmp_path / "apart"
    script = incomplete(Script(log, tables, lake_root=str(apart)))
    assert rebuild(script, as_file(AT_200, tmp_path), 200).status == "committed"
    script.send(ddl("DROP TABLE t", 310, table="t"))
    script.sync()
    assert script.rows("shop", "t") == EQUAL
    assert sorted(path.name for path in tables.iterdir()) == ["shop"]
    assert sorted(path.name for path in apart.iterdir()) == ["_cdc"]


def rows(*pairs: tuple[int | None, str | None]) -> pa.Table:
    ids, values = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int32()), "v": pa.array(values, pa.string())})


# what the source had at second 200, and at second 225
AT_200 = rows((1, "a"), (2, "b"), (3, "c"))
EQUAL = Counter({(1, "a2"): 1, (3, "c"): 1, (4, "d"): 1})


def as_file(content: pa.Table, folder: Path) -> Path:
    pq.write_table(content, folder / "t.parquet")
    return folder / "t.parquet"


def as_folder(content: pa.Table, folder: Path) -> Path:
    (folder / "t").mkdir()
    for number, name in enumerate("ab"):
        pq.write_table(content.slice(number, 1 if name == "a" else None), folder / "t" / f"{name}.parquet")
    return folder / "t"


def as_delta(content: pa.Table, folder: Path) -> Path:
    write_deltalake(str(folder / "t"), content)
    return folder / "t"


FORMS = {"file": as_file, "folder": as_folder, "delta": as_delta}


def rebuild(script: Script, path: Path, since: int) -> TableLine:
    (line,) = script.sync(rebuild=Rebuild.of(["shop.t"], str(path), since * SECOND)).tables
    return line


@pytest.mark.parametrize("form", FORMS)
def test_changes_behind_the_files_are_applied_to_them(script: Script, form: str, tmp_path: Path) -> None:
    path = FORMS[form](AT_200, tmp_path)
    assert rebuild(script, path, 200).status == "committed"
    assert script.rows("shop", "t") == EQUAL
    assert script.states_of("shop", "t") == ["ok"]
    script.send(change("u", 310, 3, "c3"))
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, "a2"): 1, (3, "c3"): 1, (4, "d"): 1})


def test_files_may_hold_changes_from_behind_their_time(script: Script, tmp_path: Path) -> None:
    later = rows((1, "a2"), (3, "c"), (4, "d"))
    assert rebuild(script, as_file(later, tmp_path), 205).status == "committed"
    assert script.rows("shop", "t") == EQUAL


def test_the_copy_of_the_files_is_what_later_batches_go_back_to(script: Script, tmp_path: Path) -> None:
    path = as_folder(AT_200, tmp_path)
    assert rebuild(script, path, 200).status == "committed"
    shutil.rmtree(path)
    script.send(statement("ALTER TABLE t MODIFY v TEXT", 215))  # late: the table goes back behind its rebuild
    script.sync()
    assert script.rows("shop", "t") == EQUAL
    shutil.rmtree(script.root / "shop" / "t")
    (again,) = script.sync(rebuild=Rebuild(["shop.t"])).tables
    assert (again.status, again.action) == ("committed", "create")
    assert script.rows("shop", "t") == EQUAL


def test_a_late_schema_change_from_before_the_files_parks_the_table(script: Script, tmp_path: Path) -> None:
    assert rebuild(script, as_file(AT_200, tmp_path), 200).status == "committed"
    script.send(statement("ALTER TABLE t ADD w INT", 140))
    script.sync()
    (state,) = (state for state in script.states.values() if state.table == "t")
    assert (state.state, state.code) == ("parked", "rebuild.files_outdated")
    assert script.rows("shop", "t") == EQUAL
    wide = AT_200.append_column("w", pa.array([1, 2, 3], pa.int32()))
    (tmp_path / "wide").mkdir()
    assert "[rebuild.files_unfit]" not in rebuild(script, as_file(wide, tmp_path / "wide"), 200).reason


@pytest.mark.parametrize(("time", "state"), [(195, "ok"), (205, "parked")])
def test_late_rows_from_before_the_files_are_in_them_or_park_the_table(
    log: Log, lake: Path, time: int, state: str, tmp_path: Path
) -> None:
    """A transaction that began early ended late: its row, dated 190, stands behind rows of another partition."""
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}, time=100_000))
    script.send(change("c", 110, 1, "a"), change("c", 120, 2, "b"))
    script.send(row("c", "t", 250, {"id": 5, "v": "e"}, key=KEY, time=190_000))
    script.sync()
    files = rows((1, "a"), (2, "b"), (5, "e"))
    assert rebuild(script, as_file(files, tmp_path), 200).status == "committed"
    late = row("c", "t", 240, {"id": 6, "v": "f"}, key=KEY, partition=1, time=time * 1_000)
    script.send(late)
    script.sync()
    assert script.states_of("shop", "t") == [state]
    assert script.rows("shop", "t") == Counter({(1, "a"): 1, (2, "b"): 1, (5, "e"): 1})


def test_a_full_snapshot_takes_the_place_of_the_files(script: Script, tmp_path: Path) -> None:
    assert rebuild(script, as_file(AT_200, tmp_path), 200).status == "committed"
    script.send(*snapshot_ddl(400, {"t": (COLUMNS, KEY)}, time=400_000))
    script.send(row("r", "t", 400, {"id": 9, "v": "z"}, key=KEY, time=400_000, mark="true"))
    script.sync()
    assert script.rows("shop", "t") == Counter({(9, "z"): 1})
    assert [state.provided for state in script.states.values() if state.table == "t"] == [None]


NULL_KEY, TWICE = rows((1, "a"), (None, "b")), rows((1, "a"), (2, "b"), (1, "c"))
UNFIT: dict[str, tuple[pa.Table, str]] = {
    "missing column": (AT_200.drop_columns(["v"]), "lack 'v'"),
    "unknown column": (AT_200.append_column("w", AT_200.column("v")), "have 'w'"),
    "wrong type": (AT_200.set_column(0, "id", AT_200.column("id").cast(pa.int64())), "'id' is int64, not int32"),
    "NULL in the key": (NULL_KEY, "row=2"),
    "a key twice": (TWICE, "row=3"),
}


@pytest.mark.parametrize("problem", UNFIT)
def test_files_that_do_not_fit_change_nothing(script: Script, problem: str, tmp_path: Path) -> None:
    content, text = UNFIT[problem]
    before = script.rows("shop", "t")
    line = rebuild(script, as_file(content, tmp_path), 200)
    assert line.status == "parked"
    assert "[rebuild.files_unfit]" in line.reason and text in line.reason
    assert script.rows("shop", "t") == before
    assert not list((script.root / "_cdc").rglob("provided/*/*"))


@pytest.mark.parametrize("exists", [False, True])
def test_what_is_no_table_is_refused(script: Script, exists: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    if exists:
        path.write_text("id,v\n")
    assert "[rebuild.files_missing]" in rebuild(script, path, 200).reason


def test_files_from_before_the_rows_became_unknown_are_refused(script: Script, tmp_path: Path) -> None:
    assert "[rebuild.files_behind]" in rebuild(script, as_file(AT_200, tmp_path), 130).reason


def test_a_table_without_key_is_refused(log: Log, lake: Path, tmp_path: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, ())}, time=100_000), change("c", 110, 1, "a", keyed=()))
    script.sync()
    assert "[rebuild.no_key]" in rebuild(script, as_file(rows((1, "a")), tmp_path), 200).reason
    assert script.rows("shop", "t") == Counter({(1, "a"): 1})


@dataclass(frozen=True)
class Saved:
    """A table as it was equal to the model, and the time up to which it holds every change."""

    path: Path
    since: int


# the last: a partial image of a row that was deleted before the files were made
_REFUSED = ("rebuild.no_key", "rebuild.files_unfit", "rebuild.files_behind", "apply.quarantine_exceeded")


class FromFiles(Replay):
    """Saves tables that equal the model as files, and rebuilds them from these after later batches.

    :ivar rebuilt: tables that were rebuilt.
    """

    def __post_init__(self) -> None:
        self.case = replace(self.case, batches=6)
        super().__post_init__()
        self.rebuilt, self._saved = 0, dict[str, Saved]()
        self._folder = Path(f"{self.root}-saved")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(2 * number, chunks, picture)
        if problems or not self._seqs or "the pipeline" in self.parked:
            return problems
        operator = random.Random(f"{self.case.seed} {number} files")
        usable = [i for i in sorted(self._saved) if self.states[i].state == "ok" and _key(self.states[i])]
        if usable:
            self._rebuild(2 * number + 1, operator.choice(usable), damages=operator.random() < 0.5)
        if picture is None:
            return []
        if not (problems := self._differences(picture)):
            self._save(number, operator)
        return problems

    def _save(self, number: int, operator: random.Random) -> None:
        for table_id, state in self.states.items():
            if state.state == "ok" and state.source_time is not None and _key(state) and operator.random() < 0.7:
                content = DeltaTable(located(str(self.root), state.location)).to_pyarrow_table()
                folder = self._folder / f"{table_id}-{number}"
                folder.mkdir(parents=True)
                path = FORMS[operator.choice(sorted(FORMS))](content, folder)
                self._saved[table_id] = Saved(path, state.source_time)

    def _rebuild(self, seq: int, table_id: str, *, damages: bool) -> None:
        state, saved = self.states[table_id], self._saved[table_id]
        name = f"{state.database}.{state.table}"
        self.story.append(f"    batch {seq} rebuilds {name} from {saved}")
        order = Rebuild([name], RebuildSource.FILES, saved.since, str(saved.path))
        job = JobDocument.from_document(replace(self._job(seq, []), order=order).document())
        if damages:
            DeltaTable(located(str(self.root), state.location)).delete()
        self.log.arm(None)
        result = self._sync(job)
        (line,) = (line for line in result.tables if (line.database, line.table) == (state.database, state.table))
        if line.status == "committed":
            self.rebuilt += 1
        else:
            self.story.append(f"    not rebuilt: {line.reason}")
            assert any(f"[{code}]" in line.reason for code in _REFUSED), line.reason
        self._take_over(seq, result.document())
        location = located(str(self.root), state.location)
        if line.status != "committed" and DeltaTable(location).version() != state.version:
            DeltaTable(location).restore(state.version)
        self._backups.append((self._seqs, self._schema, self.states))

    def _differences(self, picture: Picture) -> list[str]:
        """Return what differs, without tables whose files a late statement showed to be of another structure."""
        outdated = [state for state in self.states.values() if "rebuild.files_outdated" in state.reason]
        self.parked |= {state.table_id: state.code for state in outdated}
        names = {f"{state.database}.{state.table}" for state in outdated}
        return [problem for problem in super()._differences(picture) if not any(name in problem for name in names)]


def _key(state: TableState) -> list[int]:
    return state.schema["key"] if state.schema is not None else []


SEEDS = {"debezium-json": range(800, 805), "dts-protobuf": range(800, 805), "drs-json-c": range(807, 813)}
LEAST = amount(1, 3)  # more where those show nothing of what is asked for


@pytest.mark.parametrize("name", SEEDS)
def test_random_tables_rebuilt_from_saved_ones_equal_the_model(name: str, log: Log, lake: Path) -> None:
    rebuilt = 0
    for number, seed in enumerate(SEEDS[name]):
        if number >= LEAST and rebuilt:
            break
        history = FromFiles(case_of(name, seed, sizes=(12, 20)), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        rebuilt += history.rebuilt
    assert rebuilt > 0
