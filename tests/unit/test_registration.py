# SPDX-License-Identifier: Apache-2.0
"""Check which tables a batch registers, what it says of a catalog, and that no catalog fails it."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from airflow_provider_cdc.batch import registration
from airflow_provider_cdc.batch.registration import register_tables
from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.core.config import CdcPipeline, TargetRule
from airflow_provider_cdc.core.config.registrar_kinds import REGISTRARS, RegistrarKind
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.ledger import Lease, Ledger
from airflow_provider_cdc.ledger.registered import RegisteredTables
from airflow_provider_cdc.observability.metrics import batch_metrics
from airflow_provider_cdc.registrars.contract import CatalogName, CatalogTable, RegistrationError


@dataclass
class Recorder:
    """A catalog that takes everything, and fails where it is to fail.

    done: what it was asked for, ``+`` and ``-`` with a name.
    fails: errors by name.
    """

    done: list[str] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)
    ours: bool = True

    def register(self, table: CatalogTable) -> None:
        self._do("+", table.name)

    def remove(self, name: CatalogName, location: str) -> bool:
        self._do("-", name)
        return self.ours

    def _do(self, what: str, name: CatalogName) -> None:
        self.done.append(f"{what}{name}")
        if str(name) in self.fails:
            raise self.fails[str(name)]

    def open_registrar(self, section: object) -> Recorder:
        return self

    def take(self) -> list[str]:
        done, self.done = self.done, []
        return done


@dataclass
class Ground:
    """A pipeline with its ledger, and the catalog that it registers in."""

    pipeline: CdcPipeline
    lease: Lease
    catalog: Recorder
    states: dict[str, TableState] = field(default_factory=dict)

    def have(self, *names: str, **members: Any) -> None:
        """Let tables be there with one column, or change their states."""
        for name in names:
            database, table = name.split(".", 1)
            location = f"{database}/{table}"
            path = Path(self.pipeline.sink.root, location)
            if not path.exists():
                write_deltalake(str(path), pa.table({"id": pa.array([], pa.int64())}))
            state = self.states.get(name) or TableState(name, database, table, location, 0, schema={"columns": []})
            self.states[name] = replace(state, **members)

    def settle(self) -> list[str]:
        return register_tables(self.pipeline, self.lease, lambda: self.states)


def pipeline(folder: Path, **register: Any) -> CdcPipeline:
    sink = {"root": str(folder / "lake"), "register": {"type": "recorder", "connection": "c", **register}}
    source = {"topics": ["t"], "format": "debezium-json", "connection": "k"}
    document = {"name": "shop", "source": source, "sink": sink, "ledger": f"sqlite:///{folder}/ledger.db"}
    return CdcPipeline.from_dict(document)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    catalog = Recorder()
    assert isinstance(REGISTRARS, dict)
    monkeypatch.setitem(REGISTRARS, "recorder", RegistrarKind("recorder_of_tests"))
    module = ModuleType("recorder_of_tests")
    vars(module)["open_registrar"] = lambda section: catalog.open_registrar(section)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = pipeline(tmp_path)
    with Ledger(made.ledger).lease("shop", "me") as lease:
        yield Ground(made, lease, catalog)


def test_only_what_changed_is_sent(ground: Ground) -> None:
    ground.have("a.t", "a.u")
    assert (ground.settle(), ground.catalog.take()) == ([], ["+a.t", "+a.u"])
    ground.have("a.t", version=7, applied_seq=9, source_time=5)
    assert (ground.settle(), ground.catalog.take()) == ([], [])
    ground.have("a.t", schema={"columns": [1]})
    ground.have("a.u", made_with={"zero_dates": "text"})
    assert (ground.settle(), ground.catalog.take()) == ([], ["+a.t", "+a.u"])


def test_a_table_that_a_rule_names_is_registered_under_that_name(ground: Ground) -> None:
    rule = TargetRule("(?P<d>a).(?P<t>[tu])", "raw_{d}.{t|upper}_x")
    ground.pipeline = replace(ground.pipeline, target=[rule])
    ground.have("a.t", "b.t")
    assert (ground.settle(), ground.catalog.take()) == ([], ["+raw_a.t_x", "+b.t"])
    ground.pipeline = replace(ground.pipeline, target=[])
    assert (ground.settle(), ground.catalog.take()) == ([], ["-raw_a.t_x", "+a.t"])


def test_a_table_that_moves_leaves_its_name(ground: Ground) -> None:
    ground.have("a.t")
    ground.settle()
    ground.have("a.n")
    ground.states = {"a.t": replace(ground.states["a.t"], table="n", location="a/n")}
    assert (ground.settle(), ground.catalog.take()) == ([], ["+a.t", "-a.t", "+a.n"])


def test_a_dropped_table_goes_when_its_content_does(ground: Ground) -> None:
    ground.have("a.emptied", "a.kept", "a.parked")
    ground.settle()
    ground.catalog.take()
    ground.have("a.emptied", state=TableStatus.DROPPED, version=None)
    ground.have("a.kept", state=TableStatus.DROPPED)
    ground.have("a.parked", state=TableStatus.PARKED)
    assert (ground.settle(), ground.catalog.take()) == ([], ["-a.emptied"])


def test_a_table_without_a_commit_is_not_registered(ground: Ground) -> None:
    ground.have("a.t", version=None)
    assert (ground.settle(), ground.catalog.take()) == ([], [])


def test_an_entry_that_somebody_took_over_is_named_once(ground: Ground) -> None:
    ground.have("a.t")
    ground.settle()
    ground.catalog.ours = False
    ground.have("a.t", state=TableStatus.DROPPED, version=None)
    (warning,) = ground.settle()
    assert "a.t: the entry stays in the catalog" in warning
    assert ground.settle() == []


def test_names_are_in_lower_case_and_of_two_equal_ones_the_first_is_registered(ground: Ground, tmp_path: Path) -> None:
    ground.pipeline = pipeline(tmp_path, database="lake")
    ground.have("A.T", "b.t", "b.O.r")
    (warning,) = ground.settle()
    assert warning == "b.t is not registered: A.T has its name in the catalog, lake.t"
    assert ground.catalog.take() == ["+lake.t", "+lake.o.r"]
    ground.have("0.t")  # comes first by its id, and takes nothing away
    assert "0.t is not registered: A.T has its name" in min(ground.settle())
    assert ground.catalog.take() == []


def test_another_catalog_gets_all_tables(ground: Ground, tmp_path: Path) -> None:
    ground.have("a.t")
    ground.settle()
    ground.pipeline = pipeline(tmp_path, connection="other")
    assert (ground.settle(), ground.catalog.take()) == ([], ["+a.t", "+a.t"])


def test_a_catalog_that_is_away_is_asked_once_and_again_with_the_next_batch(ground: Ground) -> None:
    ground.have("a.t", "a.u", "a.v")
    ground.catalog.fails = {"a.u": RegistrationError("it is away", passing=True)}
    assert ground.settle() == ["a.u: it is away; 2 tables are left to the next batch"]
    ground.catalog.fails.clear()
    assert (ground.settle(), ground.catalog.take()) == ([], ["+a.t", "+a.u", "+a.u", "+a.v"])


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RegistrationError("no such name", passing=False), "a.u: no such name"),
        (KeyError("Table"), "a.u: the catalog's answer is not understood (KeyError)"),
    ],
)
def test_a_fault_of_one_table_leaves_the_others_alone(ground: Ground, error: Exception, text: str) -> None:
    ground.have("a.t", "a.u", "a.v")
    ground.catalog.fails = {"a.u": error}
    for _ in range(2):
        assert ground.settle() == [text]
    assert ground.catalog.take() == ["+a.t", "+a.u", "+a.v", "+a.u"]


def test_a_slow_catalog_is_left(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "BATCH_SECONDS", -1)
    ground.have("a.t", "a.u")
    assert ground.settle() == ["the catalog is slow: 2 tables are left to the next batch"]


def test_a_table_that_cannot_be_read_is_named(ground: Ground) -> None:
    ground.have("a.t")
    ground.states["a.t"].location = "a/nothing"
    assert ground.settle() == ["a.t: the table cannot be read (TableNotFoundError)"]


def test_a_result_shows_a_few_warnings(ground: Ground) -> None:
    names = [f"a.t{number:02}" for number in range(registration.SHOWN + 3)]
    ground.have(*names)
    ground.catalog.fails = {name: RegistrationError("no", passing=False) for name in names}
    warnings = ground.settle()
    assert (len(warnings), warnings[-1]) == (registration.SHOWN + 1, "3 further warnings of the catalog")


def test_a_connection_that_is_missing_is_a_warning(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(section: object) -> Recorder:
        raise ConfigurationError(["there is no connection 'c'"])

    monkeypatch.setattr(ground.catalog, "open_registrar", refuse, raising=False)
    ground.have("a.t")
    (warning,) = ground.settle()
    assert "the catalog cannot be asked" in warning and "there is no connection 'c'" in warning


def test_a_holder_that_lost_the_lease_records_nothing(ground: Ground) -> None:
    ground.have("a.t")
    Ledger(ground.pipeline.ledger).release_lease("shop", ground.lease.token)
    with pytest.raises(BusyError):
        ground.settle()
    assert RegisteredTables(ground.pipeline.ledger).entries("shop") == {}


def test_a_ledger_of_before_gets_the_table_of_entries(ground: Ground) -> None:
    database = sqlite3.connect(ground.pipeline.ledger.removeprefix("sqlite:///"))
    with database:
        database.execute("DROP TABLE cdc_registered")
    database.close()
    ground.have("a.t")
    assert (ground.settle(), ground.catalog.take()) == ([], ["+a.t"])
    assert ground.settle() == [] == ground.catalog.take()


def test_warnings_are_counted() -> None:
    result = BatchResult("shop", 1, ResultStatus.DONE, warnings=["a", "b"])
    for one in (result, replace(result, repeated=True)):
        assert [metric.value for metric in batch_metrics(one) if metric.name == "cdc.catalog.warnings"] == [2]
    assert BatchResult.from_document(result.document()).warnings == ["a", "b"]


@pytest.mark.parametrize(
    ("register", "problem"),
    [
        ({"type": "glue"}, "sink.register.connection: is missing"),
        ({"type": "glu", "connection": "c"}, "sink.register.type: 'glu' is not known"),
        (
            {"type": "glue", "connection": "c", "databases": "x"},
            "sink.register.databases: unknown key; did you mean 'database'",
        ),
        ({"type": "glue", "connection": "c", "database": "{table}"}, "sink.register.database: '{table}' may hold"),
        ({"type": "glue", "connection": "c", "database": "{database!r}"}, "sink.register.database: "),
        ({"type": "unity", "connection": "c"}, "sink.register.catalog: is empty"),
        ("glue", "sink.register: expected a mapping"),
        ({"type": "glue", "connection": "https://me:s3cret@host"}, "sink.register.connection: carries a secret"),
    ],
)
def test_a_section_is_checked(register: Any, problem: str) -> None:
    source = {"topics": ["t"], "format": "debezium-json", "connection": "k"}
    with pytest.raises(ConfigurationError) as caught:
        CdcPipeline.from_dict({"name": "shop", "source": source, "sink": {"root": "/lake", "register": register}})
    (problem_there,) = caught.value.problems
    assert problem_there.startswith(problem) and "s3cret" not in problem_there


def test_a_pipeline_with_a_catalog_is_written_and_read(tmp_path: Path, ground: Ground) -> None:
    assert CdcPipeline.from_yaml(ground.pipeline.to_yaml()) == ground.pipeline
    without = CdcPipeline.from_dict({**ground.pipeline.to_dict(), "sink": {"root": ground.pipeline.sink.root}})
    assert without.fingerprint() == ground.pipeline.fingerprint()  # it decides nothing about the tables
