# SPDX-License-Identifier: Apache-2.0
"""Rules for the columns and rows of a table: what each does to rows, through DDL, and when the rule changes."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.ruled_table import ANN, BOB, OPTIONS, RECORDS, SALT, digest, gone, put, statement, stored, synced
from tests.histories.scripted import Script
from tests.histories.together import resolve_all_together

CUTS = pytest.mark.parametrize("cuts", [(), (1,), (1, 2)])


@CUTS
def test_columns_are_left_out_renamed_and_masked(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    columns = {"exclude": "BORN", "rename": {"name": "full name"}, "mask": {"n": "truncate(1)"}}
    rows = [{name: str(value) if name == "n" else value for name, value in one.items()} for one in (
        {"id": 1, "full name": "Ann", "n": "10.00"}, {"id": 2, "full name": None, "n": "0.00"})]  # fmt: skip
    actual = [{**one, "n": str(one["n"])} for one in stored(synced(log, lake, RECORDS, *cuts, columns=columns))]
    assert actual == rows


def test_equal_values_have_equal_hashes_under_every_type_that_holds_them(log: Log, lake: Path) -> None:
    wider = statement("ALTER TABLE shop.t MODIFY n decimal(14,4)", 41)
    records = [*RECORDS, wider, put(51, id=3, name="Ann", born=3650, n="12.5000")]
    rows = stored(synced(log, lake, records, 3, columns={"mask": {"n": "hash", "name": "hash", "born": "hash"}}))
    ann, bob, other = sorted(rows, key=lambda one: int(one["id"]))
    assert {**ann, "id": 3} == other
    assert ann == {"id": 1, "name": digest("Ann"), "born": digest("1979-12-30"), "n": digest("12.5")}
    assert bob == {"id": 2, "name": None, "born": None, "n": digest("-7")}


@CUTS
def test_a_masked_column_stays_masked_under_another_name(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    rename = statement("ALTER TABLE shop.t RENAME COLUMN name TO nick, RENAME COLUMN born TO b", 41)
    records = [*RECORDS, rename, put(51, id=3, nick="Cid", b=1, n="1.00")]
    columns = {"mask": {"name": "hash"}, "exclude": ["born"]}
    rows = stored(synced(log, lake, records, *cuts, columns=columns))
    names = {one["id"]: one["nick"] for one in rows}
    assert names == {1: digest("Ann"), 2: None, 3: digest("Cid")}
    assert set(rows[0]) == {"id", "nick", "n"}


@CUTS
def test_a_hash_is_made_again_where_the_type_changes_its_text(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    changed = statement("ALTER TABLE shop.t MODIFY n varchar(40)", 41)
    rows = stored(synced(log, lake, [*RECORDS, changed], *cuts, columns={"mask": {"n": "hash"}}))
    assert [one["n"] for one in rows] == [digest("12.50"), digest("-7.00")]


@CUTS
def test_rows_come_and_go_with_the_filter(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    records = [
        *RECORDS,
        put(41, "u", ANN, **{**ANN, "name": "no"}),  # leaves
        put(51, "u", BOB, **{**BOB, "name": "yes"}),  # comes
        put(61, id=3, name="yes", born=None, n="1.00"),
        gone(71, id=3, name="yes", born=None, n="1.00"),
        put(81, id=4, name=None, born=None, n="1.00"),  # never in it
    ]
    rows = stored(synced(log, lake, records, *cuts, filter="name IN ('Ann', 'yes')", columns={"exclude": ["name"]}))
    assert [one["id"] for one in rows] == [2]


@CUTS
def test_any_value_that_has_a_text_is_stored_as_it(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    kinds = {
        "n": "decimal(20,10)", "flag": "bit(1)", "bits": "bit(12)", "d": "double", "f": "float", "day": "date",
        "at": "datetime(3)", "seen": "timestamp", "y": "year", "doc": "json", "e": "enum('a','b')", "i": "int unsigned",
    }  # fmt: skip
    create = f"CREATE TABLE shop.t (id int PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in kinds.items())})"
    image = {
        "n": "0.0000000000", "flag": True, "bits": "AQg=", "d": 0.1, "f": 0.5, "day": 0, "at": 1_600_000_000_120,
        "seen": "2020-09-13T12:26:40Z", "y": 2001, "doc": '{"a": 1}', "e": "b", "i": 4_000_000_000,
    }  # fmt: skip
    records = [statement(create, 4), put(21, id=1, **image), put(31, id=2, **dict.fromkeys(image))]
    rows = stored(synced(log, lake, records, *cuts, columns={"type": dict.fromkeys(kinds, "string")}))
    texts = {
        "n": "0.0000000000", "flag": "1", "bits": "2049", "d": "0.1", "f": "0.5", "day": "1970-01-01",
        "at": "2020-09-13 12:26:40.120", "seen": "2020-09-13 12:26:40", "y": "2001", "doc": '{"a": 1}', "e": "b",
        "i": "4000000000",
    }  # fmt: skip
    assert rows == [{"id": 1, **texts}, {"id": 2, **dict.fromkeys(texts)}]


@pytest.mark.parametrize("kind", ["blob", "binary(4)", "point"])
def test_a_value_without_a_text_is_not_stored_as_one(log: Log, lake: Path, kind: str) -> None:
    create = f"CREATE TABLE shop.t (id int PRIMARY KEY, raw {kind})"
    script = synced(log, lake, [statement(create, 4), put(21, id=1, raw=None)], columns={"type": {"raw": "string"}})
    (state,) = script.states.values()
    assert state.code == "shape.type" and "raw, which is" in state.reason and "has no text" in state.reason


@CUTS
def test_columns_are_computed_from_excluded_ones_too(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    add = {"who": "CONCAT(UPPER(name), '!')", "year": "YEAR(born)"}
    rows = stored(synced(log, lake, RECORDS, *cuts, columns={"exclude": ["name", "born", "n"], "add": add}))
    assert rows == [{"id": 1, "who": "ANN!", "year": 1979}, {"id": 2, "who": None, "year": None}]


def test_a_row_on_which_an_expression_fails_is_quarantined_and_none_is_lost(log: Log, lake: Path) -> None:
    records = [*RECORDS, put(41, id=3, name="0", born=None, n="0.00")]
    rule = {"columns": {"add": {"q": "10 % n"}}, "quarantine_limit": 1}
    script = Script(log, lake, tables={"shop.t": rule}, options=OPTIONS)
    script.send(*records)
    script.sync()
    assert [one["id"] for one in stored(script)] == [1, 2]
    (entry,) = script.open_records()
    assert (entry.code, "q" in entry.text) == ("rule_value", True)


@CUTS
def test_metadata_is_of_the_change_that_made_the_row(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    records = [*RECORDS, put(41, "u", ANN, **{**ANN, "name": "Anna"}), statement("RENAME TABLE shop.t TO shop.u", 45)]
    renamed = row("c", "u", 51, {"id": 3, "name": "C", "born": None, "n": "1.00"}, key=("id",), time=51)
    metadata = {"op": "_op", "position": "_pos", "table": "_table", "source_time": "_time"}
    script = Script(log, lake, tables={"shop.*": {"columns": {"metadata": metadata}}}, options=OPTIONS)
    records = [*records, renamed]
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    rows = DeltaTable(str(script.root / "shop" / "u")).to_pyarrow_table().sort_by("id").to_pylist()
    said = [(one["id"], one["_op"], one["_table"]) for one in rows]
    assert said == [(1, "update", "shop.t"), (2, "insert", "shop.t"), (3, "insert", "shop.u")]
    assert sorted(one["_pos"] for one in rows) == [one["_pos"] for one in (rows[1], rows[0], rows[2])]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"columns": {"exclude": ["id"]}}, "shape.key"),
        ({"columns": {"mask": {"id": "redact"}}}, "shape.key"),
        ({"columns": {"mask": {"born": "truncate(3)"}}}, "shape.type"),
        ({"columns": {"type": {"n": "int"}}}, "shape.type"),
        ({"columns": {"rename": {"name": "BORN"}}}, "shape.name_taken"),
        ({"columns": {"exclude": ["*"]}}, "shape.key"),
        ({"columns": {"add": {"x": "missing + 1"}}}, "shape.expression"),
        ({"filter": "name > 1 AND born"}, "shape.expression"),
    ],
)
def test_a_table_that_a_rule_does_not_fit_is_parked_and_others_go_on(
    log: Log, lake: Path, rule: dict[str, Any], code: str
) -> None:
    other = [
        statement("CREATE TABLE shop.o (id int PRIMARY KEY)", 5),
        row("c", "o", 41, {"id": 1}, key=("id",), time=41),
    ]
    script = synced(log, lake, [*RECORDS, *other], **rule)
    (state,) = [one for one in script.states.values() if one.table == "t"]
    assert (state.state, state.code) == ("parked", code)
    assert script.states_of("shop", "o") == ["ok"]
    script.tables = {}
    script.sync()
    assert [one["id"] for one in stored(script)] == [1, 2]


RULES: list[dict[str, Any]] = [
    {},
    {"columns": {"exclude": ["name"]}},
    {"columns": {"rename": {"name": "nick"}, "mask": {"n": "redact"}}},
    {"columns": {"mask": {"name": "hash"}}, "filter": "born IS NOT NULL"},
    {"columns": {"add": {"x": "id + 1"}, "metadata": {"op": "_op"}}},
]


@pytest.mark.parametrize("second", range(len(RULES)))
@pytest.mark.parametrize("first", range(len(RULES)))
def test_a_changed_rule_makes_the_table_as_if_it_had_been_stated_from_the_begin(
    log: Log, lake: Path, first: int, second: int
) -> None:
    script = synced(log, lake / "one", RECORDS, 2, **RULES[first])
    script.tables, script.policy = {"shop.t": RULES[second]} if RULES[second] else {}, {"on_rule_change": "apply"}
    more = put(41, id=3, name="C", born=1, n="3.00")
    script.send(more)
    script.sync()
    changed = stored(script)
    log.partitions.clear()
    assert changed == stored(synced(log, lake / "two", [*RECORDS, more], **RULES[second]))


def test_no_value_of_a_masked_or_excluded_column_is_in_the_table_its_states_or_the_result(log: Log, lake: Path) -> None:
    secret = "Secretly-Named"
    records = [*RECORDS, put(41, id=3, name=secret, born=1, n="987654.25")]
    columns = {"mask": {"name": "hash"}, "exclude": ["n"], "add": {"long": "LENGTH(name)"}}
    script = Script(log, lake, tables={"shop.t": {"columns": columns}}, secrets=SALT, options=OPTIONS)
    script.send(*records)
    result = script.sync()
    assert {one["long"] for one in stored(script)} == {3, None, len(secret)}
    documents = repr(result.document()) + repr([state.document() for state in script.states.values()])
    files = [path for path in (lake / "shop").rglob("*") if path.is_file()]
    assert files
    for value in (secret, "987654.25", "pepper"):
        assert value not in documents
        assert not [path for path in files if value.encode() in path.read_bytes()]
    assert not [path for path in lake.rglob("*") if path.is_file() and b"pepper" in path.read_bytes()]


def test_a_column_that_is_named_and_was_never_there_parks_the_table(log: Log, lake: Path) -> None:
    script = synced(log, lake, RECORDS, columns={"mask": {"nickname": "hash"}})
    assert [state.code for state in script.states.values()] == ["shape.column_unknown"]
    script.tables = {"shop.*": {"columns": {"mask": {"nickname": "hash"}}}}
    script.sync()
    assert [one["name"] for one in stored(script)] == ["Ann", None]


def test_each_of_many_tables_alike_names_itself(log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_all_together(monkeypatch)
    names = [f"t{number}" for number in range(6)]
    script = Script(log, lake, tables={"shop.*": {"columns": {"metadata": {"table": "_table", "op": "_op"}}}})
    script.send(*(statement(f"CREATE TABLE shop.{name} (id int PRIMARY KEY)", 4 + i) for i, name in enumerate(names)))
    script.send(*(row("c", name, 41 + i, {"id": 1}, key=("id",), time=41) for i, name in enumerate(names)))
    script.sync()
    rows = [DeltaTable(str(script.root / "shop" / name)).to_pyarrow_table().to_pylist() for name in names]
    assert rows == [[{"id": 1, "_op": "insert", "_table": f"shop.{name}"}] for name in names]


def test_another_salt_hashes_every_row_again(log: Log, lake: Path) -> None:
    script = synced(log, lake, RECORDS, columns={"mask": {"name": "hash"}})
    script.secrets, script.policy = {"mask": {"salt": "sea"}}, {"on_rule_change": "apply"}
    script.send(put(41, id=3, name="Ann", born=None, n="1.00"))
    script.sync()
    ann = hashlib.sha256(b"seaAnn").hexdigest()
    assert [one["name"] for one in stored(script)] == [ann, None, ann]


@pytest.mark.parametrize("mode", ["mirror", "append"])
def test_a_computed_column_whose_name_goes_to_another_column_is_computed_again(log: Log, lake: Path, mode: str) -> None:
    create = "CREATE TABLE shop.t (id int NOT NULL, a int, b int, PRIMARY KEY (id))"
    records = [statement(create, 4), put(21, id=1, a=1, b=None), put(31, id=2, a=None, b=2)]
    records += [statement("ALTER TABLE shop.t RENAME COLUMN a TO b, RENAME COLUMN b TO a", 41)]
    records += [statement("ALTER TABLE shop.t DROP COLUMN a", 51)]  # the name means the column that had it once more
    for cut, end in ((1, 4), (3, 4), (4, 4), (3, 5), (4, 5), (5, 5)):
        script = synced(
            log, lake / f"{cut}-{end}", records[:end], *([cut] if cut < end else []), mode=mode,
            columns={"add": {"x": "COALESCE(a, 0)"}},
        )  # fmt: skip
        assert {each["id"]: each["x"] for each in stored(script)} == ({1: 0, 2: 2} if end == 4 else {1: 1, 2: 0}), cut
        log.partitions.clear()


@pytest.mark.parametrize("first", [1, None], ids=["one row is there", "no row is there"])
@pytest.mark.parametrize("key", [", PRIMARY KEY (id)", ""], ids=["keyed", "without key"])
@pytest.mark.parametrize("exchange", ["RENAME COLUMN a TO b, RENAME COLUMN b TO a", "DROP a, RENAME COLUMN b TO a"])
def test_a_filter_whose_column_gives_its_name_to_another_chooses_the_rows_again(
    exchange: str, key: str, first: int | None, log: Log, lake: Path
) -> None:
    create = f"CREATE TABLE shop.t (id int NOT NULL, a int, b int{key})"
    records = [statement(create, 4), put(21, id=1, a=first, b=None), put(31, id=2, a=None, b=2)]
    records += [statement(f"ALTER TABLE shop.t {exchange}", 41)]
    for cut in (1, 3, 4):
        script = synced(log, lake / str(cut), records, *([cut] if cut < 4 else []), filter="a IS NOT NULL")
        assert [each["id"] for each in stored(script)] == [2], cut
        log.partitions.clear()
