"""Records nobody can read, logs that lost something, places that are not ours: clear errors, nothing half done."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from deltalake import DeltaTable, write_deltalake

from tests.airflow.shop import PHASES, Answer, demand_data
from tests.stack.broker import Broker
from tests.system import processes
from tests.system.site import Site, error_of, feed, records, source
from tests.system.verdict import ledger_faults, unequal, versions

pytestmark = pytest.mark.system

_TABLES = len(PHASES[0]["end_offsets"]) - 2 if PHASES else 0


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    demand_data()
    with Broker() as running:
        yield running


@dataclass
class Place:
    """One test's pipeline, over topics of its own name in the common broker."""

    site: Site
    broker: Broker
    prefix: str

    def feed(self, phase: int, *, same_offsets: bool = True) -> None:
        """Bring a phase of the shop's log into this test's topics."""
        feed(self.broker, phase, phase, self.prefix, same_offsets=same_offsets)

    def topic(self, table: str) -> str:
        """Return the topic of a table."""
        return f"{self.prefix}.shop.{table}"

    def produce(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Write records as they are."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "message.max.bytes": 20_000_000})
        for value in values:
            producer.produce(topic, value=value, partition=partition)
        assert producer.flush(60) == 0

    def expire(self, topic: str, partition: int, offset: int) -> None:
        """Delete a partition's records below an offset, as retention does."""
        below = TopicPartition(topic, partition, offset)
        for done in self.broker.admin.delete_records([below]).values():
            done.result(30)

    def recreate(self, topic: str) -> None:
        """Delete a topic and create it anew, empty."""
        for done in self.broker.admin.delete_topics([topic], operation_timeout=30).values():
            done.result(30)
        self.broker.create_topic(topic, 2)

    def leave_planned(self) -> None:
        """Plan a batch whose engine dies before it has read anything."""
        running = self.site.launch()
        assert running.until(lambda run: bool(_engines(run.watch())))
        for pid in _engines(running.watch()):
            processes.kill(pid)
        assert running.answer().code == 5
        assert self.site.batches()[-1]["status"] == "planned"


def _engines(present: dict[int, str]) -> list[int]:
    return [pid for pid, line in present.items() if "launch/run.py" in line]


@pytest.fixture
def place(kafka: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A pipeline whose topics hold the shop's first phase."""
    prefix = "t" + "".join(c for c in request.node.name if c.isalnum())[-60:]
    site = Site(tmp_path, {"bootstrap.servers": kafka.bootstrap}, {"source": source(prefix)})
    site.changes["policy"] = {"lease_seconds": 5}
    found = Place(site, kafka, prefix)
    found.feed(0)
    return found


def _refused(answer: Answer, code: int, name: str, *words: str) -> None:
    """Demand an error of this name, said to people and to machines, that holds these words."""
    assert answer.code == code, answer.out + answer.err
    assert answer.json["status"] == "failed"
    assert error_of(answer)["code"] == name, answer.err
    assert "Traceback" not in answer.err
    for word in words:
        assert word in str(error_of(answer)), answer.err


def _parked(answer: Answer, *tables: str) -> dict[str, str]:
    """Demand that these tables and no others were set aside; return why."""
    assert (answer.code, answer.json["status"]) == (3, "parked"), answer.out + answer.err
    why = {line["table"]: line["reason"] for line in answer.json["parked"]}
    assert set(why) == set(tables), why
    return why


# ---- records


def _row() -> bytes:
    """Return a real change of the table customers."""
    return next(r.value for r in records(1, 1) if r.topic == "shopdb.shop.customers" and r.value)


def _bad() -> dict[str, bytes]:
    return {
        "malformed": b'{"before": nul, "after": {}}',
        "truncated": _row()[: len(_row()) // 2],
        "no text": b"\x00\x00\x00\x00\x07\xff\xfe\x01avro",
        "empty": b"",
        "foreign": b'{"data":[{"id":"1"}],"database":"shop","es":1,"isDdl":false,"table":"customers","type":"INSERT"}',
        "no object": b"[1, 2, 3]",
        "truncated in a character": '{"after": "ü'.encode()[:-1],
        "deep": b"[" * 100_000,
        "over-long": b'{"after": "' + b"x" * 12_000_000,
    }


def test_bad_records_within_and_beyond_the_budget(place: Place) -> None:
    bad = _bad()
    topic, first = place.topic("customers"), PHASES[0]["end_offsets"]["shopdb.shop.customers"][0]
    place.produce(topic, *bad.values())
    refused = place.site.sync()
    _refused(refused, 3, "land.quarantine_exceeded", f"{len(bad)} records", "nothing was applied")
    assert error_of(refused)["where"] == {"topic": topic, "partition": 0, "offset": first}
    assert versions(place.site.lake) == {}
    assert place.site.batches()[0]["status"] == "planned"

    place.site.changes["policy"]["quarantine_limit"] = len(bad)
    done = place.site.sync()
    assert (done.code, done.json["status"], done.json["quarantined"]) == (0, "done", len(bad)), done.err
    told = done.json["quarantine"]
    assert [entry["offset"] for entry in told] == list(range(first, first + len(bad)))
    assert {(entry["topic"], entry["partition"]) for entry in told} == {(topic, 0)}
    assert all(entry["error_code"] and entry["error"] for entry in told)
    assert "xxxx" not in done.out + done.err + refused.out + refused.err, "no content of records in messages"
    assert unequal(place.site, 0) == {}

    # the rows behind the bad ones are read, and the budget is each batch's own
    place.feed(1, same_offsets=False)
    place.produce(topic, bad["malformed"], partition=1)
    done = place.site.sync()
    assert (done.code, done.json["quarantined"]) == (0, 1), done.err
    assert unequal(place.site, 1) == {}
    assert ledger_faults(place.site, 2) == []


def test_a_bad_record_in_the_schema_topic_is_counted_too(place: Place) -> None:
    place.produce(place.prefix, b'{"ddl": 17')
    _refused(place.site.sync(), 3, "land.quarantine_exceeded", place.prefix)
    place.site.changes["policy"]["quarantine_limit"] = 1
    done = place.site.sync()
    assert (done.code, done.json["quarantined"]) == (0, 1), done.err
    assert unequal(place.site, 0) == {}


# ---- the log


def test_offsets_expired_before_planning(place: Place) -> None:
    assert place.site.sync().code == 0
    before = versions(place.site.lake)
    place.feed(1)
    ends = PHASES[0]["end_offsets"]["shopdb.shop.customers"]
    place.expire(place.topic("customers"), 0, ends[0] + 10)
    refused = place.site.sync()
    _refused(refused, 3, "kafka.offsets_expired", place.topic("customers"), str(ends[0]), "rebuild")
    assert versions(place.site.lake) == before
    assert ledger_faults(place.site, 1) == []
    assert unequal(place.site, 0) == {}


def test_offsets_expired_between_planning_and_landing(place: Place) -> None:
    place.leave_planned()
    place.expire(place.topic("orders"), 1, 5)
    refused = place.site.sync()
    _refused(refused, 3, "kafka.offsets_expired", place.topic("orders"), "rebuild")
    assert error_of(refused)["where"]["partition"] == 1
    assert versions(place.site.lake) == {}
    assert [b["status"] for b in place.site.batches()] == ["planned"]


def test_a_topic_made_anew_before_planning(place: Place) -> None:
    assert place.site.sync().code == 0
    place.recreate(place.topic("orders"))
    _refused(place.site.sync(), 3, "kafka.topic_recreated", place.topic("orders"))
    assert ledger_faults(place.site, 1) == []
    assert unequal(place.site, 0) == {}


def test_a_topic_made_anew_between_planning_and_landing(place: Place) -> None:
    place.leave_planned()
    place.recreate(place.topic("orders"))
    place.produce(place.topic("orders"), b"{}")
    refused = place.site.sync()
    _refused(refused, 3, "kafka.end_beyond_log", place.topic("orders"), "rebuild")
    assert versions(place.site.lake) == {}


def test_a_topic_that_is_gone(place: Place) -> None:
    assert place.site.sync().code == 0
    for done in place.broker.admin.delete_topics([place.topic("orders")], operation_timeout=30).values():
        done.result(30)
    refused = place.site.sync()
    _refused(refused, 3, "kafka.topic_gone", place.topic("orders"))
    assert unequal(place.site, 0) == {}


# ---- the sink


def _foreign_files(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "export.csv").write_text("id,name\n1,a\n")


def _foreign_table(place: Path) -> None:
    write_deltalake(str(place), pa.table({"whose": ["not yours"]}))


@pytest.mark.parametrize("lay", [_foreign_files, _foreign_table])
def test_a_location_that_is_taken_parks_its_table_only(place: Place, lay: object) -> None:
    location = place.site.location("customers")
    lay(location)  # type: ignore[operator]
    laid = {file: file.read_bytes() for file in location.rglob("*") if file.is_file()}
    why = _parked(place.site.sync(), "customers")
    assert "sink.not_ours" in why["customers"] and str(location) in why["customers"]
    assert {file: file.read_bytes() for file in location.rglob("*") if file.is_file()} == laid
    assert unequal(place.site, 0, but=["customers"]) == {}
    assert place.site.tables()["customers"]["state"] == "parked"

    shutil.rmtree(location)
    place.feed(1)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(place.site, 1) == {}
    assert ledger_faults(place.site, 2) == []


def test_what_was_parked_is_told_again_where_nothing_is_new(place: Place) -> None:
    _foreign_files(place.site.location("customers"))
    _parked(place.site.sync(), "customers")
    _parked(place.site.sync(), "customers")


def test_the_same_command_again_catches_up_without_new_records(place: Place) -> None:
    _foreign_files(place.site.location("customers"))
    _parked(place.site.sync(), "customers")
    shutil.rmtree(place.site.location("customers"))
    assert place.site.sync().code == 0
    assert unequal(place.site, 0) == {}


def _meddle(place: Place) -> DeltaTable:
    """Let somebody else delete rows of one table after the first batch."""
    assert place.site.sync().code == 0
    table = DeltaTable(str(place.site.location("customers")))
    before = table.version()
    table.delete("id < 20")
    place.feed(1)
    why = _parked(place.site.sync(), "customers")["customers"]
    assert "sink.changed_by_other" in why and "DELETE" in why and f"expected_version={before}" in why, why
    assert unequal(place.site, 1, but=["customers"]) == {}
    assert DeltaTable(str(place.site.location("customers"))).version() == before + 1
    return table


def test_a_table_that_somebody_else_changed_is_parked_and_catches_up_after_the_commit_is_taken_away(
    place: Place,
) -> None:
    table = _meddle(place)
    (place.site.location("customers") / "_delta_log" / f"{table.version():020}.json").unlink()
    place.feed(2)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(place.site, 2) == {}


def test_a_table_that_somebody_else_changed_catches_up_after_a_restore(place: Place) -> None:
    table = _meddle(place)
    table.restore(table.version() - 1)
    place.feed(2)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert unequal(place.site, 2) == {}


def test_a_table_that_is_away_is_parked_and_catches_up_when_it_is_back(place: Place) -> None:
    assert place.site.sync().code == 0
    location = place.site.location("customers")
    location.rename(place.site.folder / "away")
    place.feed(1)
    assert "sink.missing" in _parked(place.site.sync(), "customers")["customers"]
    assert not location.exists()
    (place.site.folder / "away").rename(location)
    place.feed(2)
    assert place.site.sync().code == 0
    assert unequal(place.site, 2) == {}


def test_upkeep_by_others_is_no_meddling(place: Place) -> None:
    assert place.site.sync().code == 0
    place.feed(1)
    assert place.site.sync().code == 0
    DeltaTable(str(place.site.location("customers"))).optimize.compact()
    DeltaTable(str(place.site.location("orders"))).create_checkpoint()
    place.feed(2)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert unequal(place.site, 2) == {}


def test_a_sink_root_that_cannot_be_made(place: Place) -> None:
    (place.site.folder / "file").write_text("no folder")
    place.site.changes["sink"] = {"root": str(place.site.folder / "file" / "lake")}
    refused = place.site.sync()
    assert refused.code in (2, 3, 5), refused.err
    assert "Traceback" not in refused.err
    assert refused.json["error"]["hint"]


def test_a_sink_that_cannot_be_written_is_an_error_and_the_batch_goes_on_once_it_can(place: Place) -> None:
    """The root is a folder of the kernel's, where not even root may write."""
    place.site.changes["sink"] = {"root": "/proc/sys/lake"}
    refused = place.site.sync()
    assert refused.code in (2, 3, 5), refused.err
    assert "Traceback" not in refused.err
    del place.site.changes["sink"]
    assert place.site.sync_patiently()[0].code == 0
    assert unequal(place.site, 0) == {}


def test_a_table_location_that_cannot_be_written_parks_or_fails_but_loses_nothing(place: Place) -> None:
    """A file stands where the database's folder has to be."""
    place.site.lake.mkdir()
    (place.site.lake / "shop").write_text("in the way")
    refused = place.site.sync()
    assert refused.code in (3, 5), refused.out + refused.err
    assert "Traceback" not in refused.err
    (place.site.lake / "shop").unlink()
    place.feed(1)
    done, _ = place.site.sync_patiently()
    done = place.site.sync() if done.json["seq"] == 1 else done
    assert done.code == 0, done.err
    assert unequal(place.site, 1) == {}


def test_a_lake_that_is_not_mounted_parks_everything_and_nothing_is_lost_when_it_is_back(place: Place) -> None:
    assert place.site.sync().code == 0
    away = place.site.folder / "away"
    place.site.lake.rename(away)
    place.feed(1)
    refused = place.site.sync()
    assert refused.code in (3, 5), refused.out
    assert versions(place.site.lake) == {}, "no table is begun anew in the wrong place"
    shutil.rmtree(place.site.lake, ignore_errors=True)
    away.rename(place.site.lake)
    place.feed(2)
    done = place.site.sync()
    done = place.site.sync() if done.json.get("seq") == 2 else done
    assert done.code != 0 or unequal(place.site, 2) == {}, "rows were lost in silence"
