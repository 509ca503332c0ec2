# SPDX-License-Identifier: Apache-2.0
"""The command line's contract, with real processes and a real broker."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.histories.debezium_records import row
from tests.system import processes

from .shop import Shop, commits, rows, until

if TYPE_CHECKING:
    from tests.services.broker import Broker

RESULT_KEYS = {"status", "seq", "records", "changes", "schema_changes", "quarantined", "tables", "seconds"}


@pytest.fixture
def shop(filled: Broker, tmp_path: Path) -> Shop:
    return Shop(tmp_path, {"bootstrap.servers": filled.bootstrap})


def test_a_batch_its_tables_and_its_place_in_the_ledger(shop: Shop) -> None:
    first = shop.run("sync", "--json")
    assert first.code == 0, first.err
    result = first.json
    assert set(result) >= RESULT_KEYS
    assert (result["status"], result["seq"], result["quarantined"]) == ("done", 1, 0)
    assert result["changes"] == {"snapshot": 491, "insert": 1366, "update": 1410, "delete": 39}
    assert {table["table"] for table in result["tables"]} >= {"customers", "orders", "page_views"}
    assert "land" in first.err, "progress is reported while it works"

    tables = {table["table"]: table for table in shop.run("tables", "--json").json}
    customers = tables["customers"]
    assert set(customers) >= {"database", "table", "state", "reason", "location", "position", "source_time", "columns"}
    assert (customers["state"], customers["location"]) == ("ok", str(shop.lake / "shop" / "customers"))
    assert customers["columns"][0] == {"name": "id", "type": "int(11)", "nullable": False, "key": True}
    assert len(rows(shop.lake, "shop", "customers")) > 80

    (batch,) = shop.run("ledger", "--json").json
    assert set(batch) >= {"seq", "status", "start", "end", "until", "planned_at", "committed_at"}
    assert min(batch[name] for name in ("seconds", "cpu_seconds", "added_bytes")) > 0
    assert (batch["seq"], batch["status"], batch["until"]) == (1, "committed", None)
    assert batch["start"]["shopdb.shop.customers"] == {"0": 0, "1": 0}
    assert set(batch["end"]["shopdb.shop.customers"]) == {"0", "1"}
    for verb in ("tables", "ledger", "plan"):
        text = shop.run(verb)
        assert (text.code, text.err) == (0, "")
        assert text.out.count("\n") >= 1


def test_the_same_request_again_starts_nothing_and_commits_nothing(shop: Shop) -> None:
    moment = until(1)
    first = shop.run("sync", "--json", "--until", moment)
    before = commits(shop.lake)
    again = shop.run("sync", "--json", "--until", moment)
    assert (first.code, again.code) == (0, 0)
    assert {**again.json, "seconds": 0} == {**first.json, "seconds": 0, "repeated": True}
    assert commits(shop.lake) == before
    assert "land" not in again.err


def test_a_plan_records_nothing(shop: Shop) -> None:
    seen = shop.run("plan", "--json").json
    assert (seen["status"], seen["seq"]) == ("new", 1)
    assert seen["records"] > 3000
    assert shop.run("ledger", "--json").json == []
    assert shop.run("sync").code == 0
    assert shop.run("plan", "--json").json["status"] == "nothing_to_do"


def test_a_plan_names_who_holds_a_time_back(shop: Shop) -> None:
    seen = shop.run("plan", "--json", "--until", "2030-01-01T00:00:00Z").json
    assert {hold["topic"] for hold in seen["holds"]} >= {"shopdb.shop.customers"}


# ---- what can be wrong


def test_all_problems_of_a_pipeline_at_once(shop: Shop) -> None:
    shop.changes = {"policy": {"engine": "warp", "quarantine_limit": -1}, "sink": {"root": "here"}}
    refused = shop.run("sync", "--json")
    assert refused.code == 2
    for word in ("policy.engine", "policy.quarantine_limit", "sink.root"):
        assert word in refused.err
    assert refused.json["status"] == "failed"
    assert refused.json["error"]["code"] == "configuration"


def test_an_unknown_topic_is_reported_with_those_that_are_there(shop: Shop) -> None:
    shop.changes = {"source": {"topics": r"elsewhere\..*"}}
    refused = shop.run("sync")
    assert refused.code == 2
    assert "kafka.topic_unknown" in refused.err
    assert "shopdb.shop.customers" in refused.err


def test_an_unknown_connection_says_how_to_define_it(shop: Shop) -> None:
    shop.changes = {"source": {"connection": "nowhere"}}
    refused = shop.run("sync")
    assert refused.code == 2
    assert "AIRFLOW_CONN_NOWHERE" in refused.err


def test_no_broker_means_try_again(shop: Shop) -> None:
    shop.connection = {"bootstrap.servers": "127.0.0.1:1"}
    refused = shop.run("sync", "--json")
    assert refused.code == 5
    assert "kafka.unavailable" in refused.err
    assert refused.json["transient"] is True


def test_a_wrong_password_is_no_outage(shop: Shop, filled: Broker) -> None:
    shop.connection = filled.sasl_settings(password="not this one")
    refused = shop.run("sync")
    assert refused.code == 2
    assert "refuses the login" in refused.err
    assert "not this one" not in refused.err + refused.out


def test_a_time_that_is_none(shop: Shop) -> None:
    assert shop.run("sync", "--until", "yesterday").code == 2


def test_records_beyond_the_budget_fail_and_commit_nothing(shop: Shop, filled: Broker) -> None:
    from confluent_kafka import Producer

    filled.create_topic("odd.shop.things", 1)
    producer = Producer({"bootstrap.servers": filled.bootstrap})
    for value in (b"{", b"\xff\x00", b'{"payload": 1}'):
        producer.produce("odd.shop.things", value=value)
    producer.flush(30)
    shop.changes = {"source": {"topics": ["odd.shop.things"]}}
    refused = shop.run("sync", "--json")
    assert refused.code == 3
    assert refused.json["status"] == "failed"
    assert refused.json["error"]["code"] == "land.quarantine_exceeded"
    (batch,) = shop.run("ledger", "--json").json
    assert batch["status"] == "planned"
    shop.changes["policy"] = {"quarantine_limit": 5}
    taken = shop.run("sync", "--json")
    assert (taken.code, taken.json["status"], taken.json["quarantined"]) == (0, "done", 3), taken.err


def test_a_source_log_that_began_again_applies_nothing_before_it_is_approved(
    shop: Shop, filled: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException
    from confluent_kafka import Producer

    from airflow_provider_cdc import CdcSyncOperator

    def send(key: int, file: str, number: int, pos: int | None = None) -> None:
        gtid = f"861d4b0d-e67c-11f1-beee-02fc00000001:{number}"
        pos = 100 * number if pos is None else pos
        record = row("c", "things", pos, {"id": key}, key=("id",), time=1_000 * number, file=file, gtid=gtid)
        producer.produce(record.topic, partition=0, key=record.key, value=record.value)
        producer.flush(30)

    filled.create_topic("src.shop.things", 1)
    producer = Producer({"bootstrap.servers": filled.bootstrap})
    create = "CREATE TABLE shop.things (id int NOT NULL PRIMARY KEY)"
    source = {"topics": ["src.shop.things"], "schema_topic": None, "heartbeat_topic": None}  # of one connector
    shop.changes = {"source": source, "tables": {"shop.things": {"create": create}}}
    send(1, "mysql-bin.000007", 1)
    assert shop.run("sync", "--json").code == 0
    before = commits(shop.lake)
    assert before
    send(2, "mysql-bin.000001", 2)
    for _ in range(2):
        refused = shop.run("sync", "--json")
        assert refused.code == 3
        assert refused.json["error"]["code"] == "source.new_generation"
        assert refused.json["error"]["where"]["offset"] == 1
    assert commits(shop.lake) == before
    assert [batch["status"] for batch in shop.run("ledger", "--json").json] == ["committed", "planned"]
    # a lost ledger has forgotten the question; the next run asks again
    shop.ledger.rename(shop.ledger.with_suffix(".lost"))
    assert shop.run("approve", "--json").json["new_generation"] is None
    refused = shop.run("sync", "--json")
    assert refused.json["error"]["code"] == "source.new_generation"
    # what an operator sees, and the command that the error names
    shown = shop.run("approve", "--json").json
    assert shown["new_generation"] == "src.shop.things/0:1"
    assert [(one["offset"], one["gtid"][-2:]) for one in shown["first_records"]] == [(1, ":2")]
    text = shop.run("approve").out
    assert "src.shop.things" in text
    assert "It cannot be taken back" in text
    command = re.search(r"`airflow-cdc (approve \S+ --new-generation \S+)`", refused.json["error"]["hint"])
    assert command is not None
    verb, file, *flag = command[1].split()
    assert Path(file).exists()
    other = shop.run(verb, "--new-generation", "src.shop.things/0:7", "--json")
    assert (other.code, other.json["error"]["code"]) == (3, "approve.other_record")
    approved = shop.run(verb, *flag, "--json")
    assert (approved.code, approved.json["status"]) == (0, "done"), approved.err
    assert approved.json["new_generations"] == ["src.shop.things/0:1"]
    again = shop.run(verb, *flag, "--json")
    assert (again.code, again.json["status"], again.json["seq"]) == (0, "approved_before", 2)
    nothing = shop.run(verb, "--new-generation", "--json")
    assert (nothing.code, nothing.json["error"]["code"]) == (3, "approve.nothing_waits")
    send(1, "mysql-bin.000001", 3)
    assert shop.run("sync", "--json").json["records"] == 1
    # in a DAG; what was approved once covers no later log
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", shop.env()["AIRFLOW_CONN_SHOP_KAFKA"])
    send(2, "mysql-bin.000001", 4, pos=50)
    for approved in (None, "src.shop.things/0:1"):
        task = CdcSyncOperator(task_id="sync", pipeline=shop.document(), new_generation=approved)
        with pytest.raises(AirflowFailException, match=r"source\.new_generation.*'src\.shop\.things/0:3'"):
            task.execute({})
    task = CdcSyncOperator(task_id="sync", pipeline=shop.document(), new_generation="src.shop.things/0:3")
    assert task.execute({})["new_generations"] == ["src.shop.things/0:3"]
    assert task.execute({})["status"] == "nothing_to_do"


# ---- two at once, and sudden ends


def test_two_at_once_one_works_and_the_other_names_it(shop: Shop) -> None:
    both = [shop.start("sync", "--json") for _ in range(2)]
    answers = [(*process.communicate(timeout=300), process.returncode) for process in both]
    codes = sorted(code for _, _, code in answers)
    assert codes == [0, 5], answers
    out, err, _ = next(answer for answer in answers if answer[2] == 5)
    worker = next(process for process in both if process.returncode == 0)
    assert "ledger.busy" in err
    assert f"process {worker.pid}" in err
    assert json.loads(out)["error"]["code"] == "ledger.busy"
    assert len(shop.run("ledger", "--json").json) == 1


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_after_a_sudden_end_the_same_command_finishes_the_batch(shop: Shop, ending: signal.Signals) -> None:
    shop.changes = {"policy": {"engine": "inline", "lease_seconds": 2}}
    process = shop.start("sync", "--json")
    engine = _engine_of(process)
    process.send_signal(ending)
    process.communicate(timeout=60)
    assert process.returncode in (-ending, 5)
    _gone(engine)
    deadline = time.monotonic() + 120
    while (again := shop.run("sync", "--json")).code == 5 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert again.code == 0, again.err
    (batch,) = shop.run("ledger", "--json").json
    assert batch["status"] == "committed"
    assert again.json["changes"]["snapshot"] == 491


def _engine_of(process: subprocess.Popen[str]) -> int:
    """Wait for the engine that a command starts."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in processes.descendants(process.pid):
            if "run.py" in processes.command(pid):
                return pid
        time.sleep(0.02)
    raise AssertionError("no engine was started")


def _gone(pid: int) -> None:
    deadline = time.monotonic() + 60
    while processes.state(pid) not in "ZX":
        if time.monotonic() > deadline:
            processes.kill(pid)
            raise AssertionError("the engine outlived its command")
        time.sleep(0.05)


# ---- secrets


def test_the_password_is_nowhere_but_in_the_environment(shop: Shop, filled: Broker) -> None:
    shop.connection = filled.sasl_settings()
    secret = str(shop.connection["sasl.password"])
    process = shop.start("sync", "--json")
    engine = _engine_of(process)
    arguments = b" ".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (engine, process.pid))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert secret.encode() not in arguments
    assert secret not in out + err
    with_secret = [f for f in shop.folder.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]
    assert with_secret == []
    assert len(list(shop.lake.glob("_cdc/shop/jobs/1/*/job.json"))) == 1


def test_doctor_says_what_is_well_and_what_is_not(shop: Shop) -> None:
    well = shop.run("doctor", "--json")
    assert {finding["check"] for finding in well.json} >= {"python packages", "java", "broker", "ledger", "sink"}
    assert [finding for finding in well.json if finding["ok"] is False] == []
    assert well.code == 0
    shop.connection = {"bootstrap.servers": "127.0.0.1:1"}
    ill = shop.run("doctor")
    assert ill.code == 2
    assert "FAIL broker" in ill.out
    assert "->" in ill.out


def test_doctor_probes_the_sink_and_leaves_nothing_in_it(shop: Shop) -> None:
    well = shop.run("doctor", "--probe", "--json")
    (probed,) = [finding for finding in well.json if finding["check"].startswith("probe")]
    assert (probed["check"], probed["ok"], well.code) == ("probe", True, 0)
    assert not shop.lake.exists()
    (shop.folder / "notes.txt").write_text("not a folder")
    shop.changes = {"sink": {"root": f"{shop.folder}/notes.txt/lake"}}
    ill = shop.run("doctor", "--probe")
    assert ill.code == 2
    assert re.search(r"^FAIL probe: create: \[.*\n +-> ", ill.out, re.MULTILINE), ill.out
