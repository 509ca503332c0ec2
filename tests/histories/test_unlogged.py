# SPDX-License-Identifier: Apache-2.0
"""Values that rules keep out of the change log: nothing below ``_cdc`` has them, and the tables are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.config import CdcPipeline, TableRules
from airflow_provider_cdc.core.documents import Rebuild, RebuildSource
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.connect.adjusted_names import ADJUSTMENTS
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.cross_format.connect_avro import AvroConverter
from tests.histories.avro_connector import Connector
from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.ruled_table import gone, put, statement, stored, synced
from tests.histories.scripted import Script
from tests.histories.searched import holding
from tests.histories.stories import Put, Said, outcomes
from tests.histories.tools import TOOLS
from tests.services.registered_schemas import ServedSchemas

CREATE = "CREATE TABLE shop.t (id int NOT NULL, ssn varchar(40) NOT NULL, phone varchar(40), v int, PRIMARY KEY (id))"
SECRET = "hunter2"  # in each value that is to stay out
UNLOGGED = {"unlogged": ["ssn", "ph*"], "mask": {"phone": "redact"}}


def person(number: int, v: int, ssn: str = "ssn") -> dict[str, Any]:
    return {"id": number, ssn: f"{SECRET}-{number}-{v}", "phone": f"+{SECRET} {number}", "v": v}


RECORDS = [
    statement(CREATE, 4),
    put(21, **person(1, 1)),
    put(31, **person(2, 1)),
    put(41, "u", person(1, 1), **person(1, 2)),
    put(51, **person(3, 1)),
    gone(61, **person(2, 1)),
]
LEFT = [{"id": 1, "phone": "***", "v": 2}, {"id": 3, "phone": "***", "v": 1}]


def test_the_search_finds_a_value(log: Log, lake: Path) -> None:
    synced(log, lake, RECORDS)
    assert any(name.endswith(".parquet") for name in holding(lake, SECRET))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cuts", [(), (1,), (1, 3, 4)])
@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append", "history"])
def test_nothing_below_cdc_has_the_values(log: Log, lake: Path, mode: str, cuts: tuple[int, ...]) -> None:
    script = synced(log, lake, RECORDS, *cuts, columns=UNLOGGED, mode=mode)
    rows = stored(script)
    assert holding(lake, SECRET) == [] and SECRET not in repr(rows)
    assert {name: row[name] for row in rows for name in ("phone",)} == {"phone": "***"}
    if mode == "mirror":
        assert rows == LEFT


def test_undecodable_records_leave_no_bytes(log: Log, lake: Path) -> None:
    script = synced(log, lake, RECORDS, columns=UNLOGGED)
    bad = put(71, **person(4, 1))
    assert bad.value is not None
    script.send(Record(bad.topic, bad.partition, bad.time, bad.key, bad.value[:-9], ()))
    script.sync()
    (entry,) = script.open_records()
    assert entry.size is None and holding(lake, SECRET) == []


def test_a_row_that_does_not_fit_leaves_no_values(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"columns": UNLOGGED, "quarantine_limit": 1}})
    script.send(*RECORDS, put(71, **{**person(4, 1), "v": "no number"}))
    script.sync()
    (entry,) = script.open_records()
    assert entry.code and holding(lake, SECRET) == []
    assert stored(script) == LEFT


@pytest.mark.parametrize("cuts", [(), (6,), (1, 6, 7)])
def test_a_new_name_of_a_column_that_no_rule_states_parks_the_table(
    log: Log, lake: Path, cuts: tuple[int, ...]
) -> None:
    rename = statement("ALTER TABLE shop.t RENAME COLUMN ssn TO tax_no", 70)
    records = [*RECORDS, rename, put(81, **person(4, 1, "tax_no"))]
    script = synced(log, lake, records, *cuts, columns=UNLOGGED)
    (state,) = script.states.values()
    assert state.state == "parked" and "values of tax_no came into the change log" in state.reason
    script.tables = {"shop.t": {"columns": {**UNLOGGED, "unlogged": ["ssn", "tax_no", "ph*"]}}}
    script.policy = {"on_rule_change": "apply"}
    script.sync()
    assert stored(script) == [*LEFT, {"id": 4, "phone": "***", "v": 1}]


@pytest.mark.parametrize("mode", ["mirror", "append"])
def test_a_row_without_key_that_comes_again_counts_once_although_it_lacks_a_value_now(
    log: Log, lake: Path, mode: str
) -> None:
    create = statement(CREATE.replace(", PRIMARY KEY (id)", ""), 4)
    rows = [row("c", "t", pos, person(1, 1), time=pos) for pos in (21, 31)]
    script = synced(log, lake, [create, *rows])
    script.tables = {"shop.t": {"columns": {"unlogged": ["ssn", "phone"]}, "mode": mode}}
    script.policy = {"on_rule_change": "apply"}
    script.send(*rows, row("c", "t", 41, person(2, 1), time=41))
    script.sync()
    assert [(row["id"], row["v"]) for row in stored(script)] == [(1, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"columns": UNLOGGED}, "values of tax_no came into the change log"),
        ({"exclude_columns": ["ssn"]}, "rows have the column tax_no from here on, and none had it before"),
    ],
)
def test_a_rule_for_the_former_name_of_a_column_that_comes_later_parks_the_table(
    log: Log, lake: Path, rule: dict[str, Any], reason: str
) -> None:
    rename = statement("ALTER TABLE shop.t RENAME COLUMN ssn TO tax_no", 70)
    script = synced(log, lake, [*RECORDS, rename, put(81, **person(4, 1, "tax_no"))])
    assert len(stored(script)) == 3
    script.tables, script.policy = {"shop.t": rule}, {"on_rule_change": "apply"}
    script.send(put(91, **person(5, 1, "tax_no")))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "parked" and reason in state.reason


@pytest.mark.parametrize("cuts", [(), (6,)])
def test_a_new_name_that_a_rule_states_is_followed(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    rename = statement("ALTER TABLE shop.t RENAME COLUMN ssn TO tax_no", 70)
    records = [*RECORDS, rename, put(81, **person(4, 1, "tax_no"))]
    script = synced(log, lake, records, *cuts, columns={**UNLOGGED, "unlogged": ["ssn", "tax*", "ph*"]})
    assert stored(script) == [*LEFT, {"id": 4, "phone": "***", "v": 1}]
    assert holding(lake, SECRET) == []


def test_rows_that_came_under_another_name_of_the_table_park_it(log: Log, lake: Path) -> None:
    renamed = statement("RENAME TABLE shop.t TO shop.people", 70)
    after = row("c", "people", 81, person(4, 1), key=("id",), time=81)
    script = Script(log, lake, tables={"shop.t": {"columns": UNLOGGED}})
    script.send(*RECORDS, renamed, after)
    script.sync()
    (state,) = script.states.values()
    assert state.state == "parked" and "under the name shop.people" in state.reason
    assert holding(lake, SECRET) != []


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [(), (6,), (7,)])
@pytest.mark.parametrize(
    "statements",
    [
        ("RENAME TABLE shop.t TO shop.people", "ALTER TABLE shop.people ADD COLUMN phone2 varchar(40)"),
        ("ALTER TABLE shop.t ADD COLUMN phone2 varchar(40), RENAME TO shop.people", None),
        ("RENAME TABLE shop.t TO shop.people", "ALTER TABLE shop.people RENAME COLUMN v TO phone2"),
    ],
    ids=["added", "added by the renaming statement", "renamed"],
)
def test_a_column_that_only_an_earlier_name_keeps_out_parks_the_table(
    log: Log, lake: Path, statements: tuple[str, str | None], cuts: tuple[int, ...]
) -> None:
    script = Script(log, lake, tables={"shop.t": {"columns": {"unlogged": ["ph*2"]}}})
    after = row("c", "people", 91, {**person(4, 1), "phone2": 7}, key=("id",), time=91)
    said = [statement(text, 70 + at) for at, text in enumerate(statements) if text]
    records = [*RECORDS, *said, after]
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    (state,) = script.states.values()
    assert state.state == "parked" and "came into the change log under the name" in state.reason


def test_a_copy_that_takes_the_name_has_its_values_kept_out_by_a_pattern(log: Log, lake: Path) -> None:
    ghost = CREATE.replace("shop.t", "shop._t_gho")
    copied = row("c", "_t_gho", 81, person(1, 2), key=("id",), time=81)
    swap = statement("RENAME TABLE shop.t TO shop._t_del, shop._t_gho TO shop.t", 90)
    script = Script(log, lake, tables={"shop.*t*": {"columns": UNLOGGED}})
    script.send(*RECORDS[:4], statement(ghost, 71), copied, swap, put(101, **person(3, 1)))
    script.sync()
    assert {state.state for state in script.states.values()} == {"ok"}
    assert holding(lake, SECRET) == []


@pytest.mark.parametrize("cuts", [(), (6,)])
def test_the_rule_of_a_name_that_a_table_has_inside_a_statement_alone_does_not_count(
    log: Log, lake: Path, cuts: tuple[int, ...]
) -> None:
    own = {name: {"mode": "mirror"} for name in ("shop.t", "shop.u")}
    script = Script(log, lake, tables={"shop.*": {"columns": UNLOGGED}, **own})
    other = statement(CREATE.replace("shop.t", "shop.u"), 5)
    swap = statement("RENAME TABLE shop.t TO shop.x, shop.u TO shop.t, shop.x TO shop.u", 70)
    ninth, fourth = (row("c", "u", pos, person(n, 1), key=("id",), time=pos) for n, pos in ((9, 11), (4, 81)))
    records = [RECORDS[0], other, ninth, *RECORDS[1:], swap, fourth]
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    assert script.states_of("shop", "u") == script.states_of("shop", "t") == ["ok"]
    assert script.rows("shop", "u") == Counter(tuple(person(*one).values()) for one in ((1, 2), (3, 1), (4, 1)))
    assert script.rows("shop", "t") == Counter([tuple(person(9, 1).values())])


@pytest.mark.parametrize("cuts", [(), (3,), (4,)])
def test_the_rule_of_a_later_name_of_a_table_without_key_takes_no_values_out_of_rows_of_an_earlier_one(
    log: Log, lake: Path, cuts: tuple[int, ...]
) -> None:
    """No column has the name that the rule states when the table has its name."""
    create = statement(CREATE.replace(", PRIMARY KEY (id)", ""), 4)
    renamed = statement("ALTER TABLE shop.t RENAME COLUMN ssn TO tax_no, RENAME TO shop.u", 40)
    script = Script(log, lake, tables={"shop.u": {"columns": {"unlogged": ["ssn"]}}})
    records = [create, *(row("c", "t", 11 + n, person(n, 1), time=11 + n) for n in (1, 2)), renamed]
    records.append(row("c", "u", 51, person(3, 1, "tax_no"), time=51))
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    assert script.states_of("shop", "u") == ["ok"], [state.reason for state in script.states.values()]
    assert script.rows("shop", "u") == Counter(tuple(person(n, 1).values()) for n in (1, 2, 3))


STATEMENTS = {
    "another type": ("ALTER TABLE shop.t MODIFY ssn text NOT NULL, MODIFY phone int", {"phone": 0}),
    "added": ("ALTER TABLE shop.t ADD COLUMN phone2 varchar(9) NOT NULL DEFAULT 'x'", {}),
    "dropped": ("ALTER TABLE shop.t DROP COLUMN ssn", {}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cuts", [(), (6,)])
@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_about_them_are_followed(log: Log, lake: Path, name: str, cuts: tuple[int, ...]) -> None:
    text, more = STATEMENTS[name]
    script = synced(log, lake, [*RECORDS, statement(text, 70)], *cuts, columns=UNLOGGED)
    assert stored(script) == [{**one, **more} for one in LEFT]


UNFIT = {
    "of the key": (CREATE.replace("KEY (id)", "KEY (id, ssn)"), UNLOGGED, "the key has the column ssn"),
    "a key that is redacted": (CREATE.replace("KEY (id)", "KEY (id, phone)"), UNLOGGED, "the key has the column phone"),
    "mistyped": (CREATE, {"unlogged": ["snn"]}, "names snn, which the table neither has nor had"),
    "generated": (
        CREATE.replace("v int", "v int, n int GENERATED ALWAYS AS (LENGTH(ssn)) STORED"),
        UNLOGGED,
        "generated column n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_a_table_that_the_rule_cannot_be_right_for_is_parked(log: Log, lake: Path, name: str) -> None:
    create, columns, reason = UNFIT[name]
    script = synced(log, lake, [statement(create, 4)], columns=columns)
    more = statement("ALTER TABLE shop.t ADD COLUMN g int GENERATED ALWAYS AS (LENGTH(ssn)) STORED", 90)
    script.send(*([put(21, **person(1, 1)), more] if name == "generated" else [put(21, **person(1, 1))]))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "parked" and reason.replace("column n", "column") in state.reason


def test_a_rule_that_comes_later_says_what_the_change_log_keeps_and_lacks(log: Log, lake: Path) -> None:
    script = synced(log, lake, RECORDS[:4])
    script.tables = {"shop.t": {"columns": UNLOGGED}}
    script.send(put(51, **person(3, 1)), gone(61, **person(2, 1)))
    script.sync()
    (question,) = script.waiting("t")
    assert question.cost is not None
    assert "still has values of ph*, ssn from before" in " ".join(question.cost.sentences("shop.t"))
    script.decide("t", Answer.APPLY)
    assert stored(script) == LEFT
    script.tables = {}
    script.sync()
    question = script.waiting("t")[0]
    assert question.cost is not None
    assert "has no values of ph*, ssn from before" in " ".join(question.cost.sentences("shop.t"))
    script.decide("t", Answer.APPLY)
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "apply.values_unlogged")  # and no NULL or default is made up
    script.tables = {"shop.t": {"columns": UNLOGGED}}
    script.sync()
    assert stored(script) == LEFT


def test_files_that_a_table_is_rebuilt_from_leave_no_values(log: Log, lake: Path, tmp_path: Path) -> None:
    script = synced(log, lake, RECORDS, columns=UNLOGGED)
    files = pa.table({"id": pa.array([1, 9], pa.int32()), "phone": [SECRET, SECRET], "v": pa.array([1, 9], pa.int32())})
    pq.write_table(files, tmp_path / "t.parquet")
    done = script.sync(rebuild=Rebuild(["shop.t"], RebuildSource.FILES, 30_000, str(tmp_path / "t.parquet")))
    assert [line.reason for line in done.tables] == [""]
    assert stored(script) == [*LEFT, {"id": 9, "phone": "***", "v": 9}]
    assert holding(lake, SECRET) == []


COLUMNS = "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, ssn VARCHAR(60), phone VARCHAR(60), v INT)"
STORY = [
    Said(COLUMNS, "t", COLUMNS),
    Put("t", COLUMNS, person(1, 1)),
    Put("t", COLUMNS, person(2, 1)),
    Put("t", COLUMNS, person(1, 2), person(1, 1)),
    Put("t", COLUMNS, None, person(2, 1)),
]


@pytest.mark.every(3)
@pytest.mark.parametrize("format", [name for name in TOOLS if name != "debezium-avro"])
def test_each_format(format: str, log: Log, lake: Path) -> None:
    create = {"create": COLUMNS} if TOOLS[format].states_creates else {}
    for ending in outcomes(format, STORY, log, lake, tables={"shop.t": {"columns": UNLOGGED, **create}}).values():
        assert ending == {"t": ("ok", "", Counter({(1, "***", 2): 1}))}
    assert any(SECRET.encode() in (one.value or b"") for records in log.partitions.values() for one in records)
    assert [name for root in lake.iterdir() for name in holding(root, SECRET)] == []


@pytest.mark.parametrize("adjusted", ADJUSTMENTS)
def test_frames_of_a_registry_whatever_their_names(adjusted: Callable[[str], str], log: Log, lake: Path) -> None:
    converter = AvroConverter()
    server, writer = ServedSchemas(converter.schemas), Connector(converter, adjusted)
    rules = {"unlogged": ["tax_no", "my-ssn", "ph*"], "mask": {"phone": "redact"}}
    settings = {"url": server.url, "timeout": "5"}
    script = Script(log, lake, "debezium-avro", registry=settings, tables={"shop.n": {"columns": rules}})
    values = {"tax_no": SECRET, "my-ssn": SECRET, "phone": SECRET}
    script.send(writer.ddl("CREATE TABLE n (id INT PRIMARY KEY, tax_no TEXT, `my-ssn` TEXT, phone TEXT, v INT)", 10))
    script.send(writer.row("c", "n", 20, {"id": 1, **values, "v": 2}, key=("id",)))
    script.sync()
    server.stop()
    assert script.states_of("shop", "n") == ["ok"], script.states
    assert script.rows("shop", "n") == {(1, "***", 2): 1} and holding(lake, SECRET) == []


REFUSED = {
    "hash": ({"mask": {"SSN": "hash"}}, "mask.SSN: hash is made of the value"),
    "a mask of all": ({"mask": {"*": "truncate(3)"}}, "mask.*: truncate(3) is made of the value"),
    "rename": ({"rename": {"ssn": "tax"}}, "rename.ssn: the table has no such column"),
    "type": ({"type": {"ssn": "text"}}, "type.ssn: the table has no such column"),
    "computed": ({"add": {"n": "LENGTH(ssn)"}}, "add.n: reads ssn"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_values_is_refused(name: str) -> None:
    rules, sentence = REFUSED[name]
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        TableRules.from_document({"shop.t": {"columns": {"unlogged": "ssn", **rules}}})


def test_a_filter_over_them_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="filter: reads SSN"):
        TableRules.from_document({"shop.t": {"columns": {"unlogged": "ssn"}, "filter": "SSN IS NULL"}})


PIPELINE = {"name": "shop", "source": {"topics": ["a"], "format": "debezium-json"}, "sink": {"root": "/lake"}}
SOURCES = {
    "packets": ({"type": "canal-tcp", "connection": "c", "destination": "d"}, {}, "writes whole packets below _cdc"),
    "spelling": ({"topics": ["a"], "format": "debezium-avro"}, {"unlogged": "s?n"}, "state * in 's?n'"),
    "key": (
        PIPELINE["source"],
        {"unlogged": "i*", "create": "CREATE TABLE t (id INT PRIMARY KEY)"},
        "id is of the key",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_needs_the_values_is_refused(name: str) -> None:
    source, rule, sentence = SOURCES[name]
    rule = {"unlogged": "ssn", **rule}
    table = {**({"create": rule["create"]} if "create" in rule else {}), "columns": {"unlogged": rule["unlogged"]}}
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        CdcPipeline.from_dict({**PIPELINE, "source": source, "tables": {"shop.t": table}})
