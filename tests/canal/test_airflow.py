# SPDX-License-Identifier: Apache-2.0
"""Airflow's part: the sensor's condition, doctor, the hook and the drain, against a byte server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_cdc import CanalDrainOperator, CanalHook, KafkaTarget, LandingFolder
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.batch.source_log import open_log, when_free
from airflow_provider_cdc.cli import main
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.formats.generated.canal_entry_pb2 import Entry
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import Messages, Packet
from airflow_provider_cdc.core.lake.segments import SegmentLog
from airflow_provider_cdc.sources import canal_targets
from airflow_provider_cdc.sources.kafka_writer import KafkaWriter
from airflow_provider_cdc.watch.looks import Looks
from airflow_provider_cdc.watch.received import ReceivedCondition
from tests.canal.recorded_session import entries, pipeline
from tests.canal.server import Canal, serving

if TYPE_CHECKING:
    from tests.services.broker import Broker

pytestmark = pytest.mark.airflow
ROOT = Path(__file__).parents[2]


def test_the_sensor_takes_what_the_server_has_and_the_sync_needs_no_server(canal: Canal, tmp_path: Path) -> None:
    time_of = Entry.FromString(entries()[0]).header.executeTime
    past = datetime.fromtimestamp(time_of / 1000, UTC) + timedelta(seconds=20)
    canal.messages[2] = [_later(entry, 60_000) for entry in canal.messages[2]]
    shop = pipeline(tmp_path)
    with serving(canal) as port, pytest.MonkeyPatch.context() as patch:
        conn = {"conn_type": "canal", "host": "127.0.0.1", "port": port, "login": "canal", "password": "canal"}
        patch.setenv("AIRFLOW_CONN_CANAL_DEFAULT", json.dumps(conn))
        assert not ReceivedCondition(shop, (past + timedelta(hours=1)).isoformat()).check().reached
        assert canal.done == 3  # what is in the lake is acknowledged
        assert ReceivedCondition(shop, past.isoformat()).check().reached
    result = run_batch(shop, until=past, say=lambda line: None)
    assert (result.status, result.records, result.error) == ("done", 2, None)


def _later(entry: bytes, millis: int) -> bytes:
    message = Entry.FromString(entry)
    message.header.executeTime += millis
    return message.SerializeToString()


def test_lag_counts_the_packets_in_the_lake_that_no_batch_has_read(
    canal: Canal, port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = pipeline(tmp_path)
    file = tmp_path / "shop.yaml"
    file.write_text(shop.to_yaml())

    def records() -> int:
        assert main(["lag", str(file), "--json"]) == 0
        return int(json.loads(capsys.readouterr().out)["records"])

    assert run_batch(shop, say=lambda line: None).error is None
    assert records() == 0
    canal.messages.append(canal.messages[2])
    open_log(shop, right=when_free(shop, "a test")).collect()
    assert records() == 1
    assert run_batch(shop, say=lambda line: None).records == 1
    assert records() == 0


def test_the_sensor_only_looks_while_somebody_works_on_the_pipeline(canal: Canal, port: int, tmp_path: Path) -> None:
    from airflow_provider_cdc.ledger import Ledger

    shop = pipeline(tmp_path)
    with Ledger(shop.ledger).lease(shop.name, "a test"):
        assert not ReceivedCondition(shop, "2020-01-01T00:00:00+00:00").check().reached
    assert canal.done == 0


def test_a_trigger_looks_as_the_sensor_does(canal: Canal, port: int, tmp_path: Path) -> None:
    shop = pipeline(tmp_path)
    answer = asyncio.run(Looks().answer(ReceivedCondition(shop, "2020-01-01T00:00:00+00:00"), 0))
    assert answer.reached and canal.done == 3
    wrong = pipeline(tmp_path / "other", connection="canal_wrong")
    with pytest.raises(CdcError) as caught:
        asyncio.run(Looks().answer(ReceivedCondition(wrong, "2020-01-01T00:00:00+00:00"), 0))
    assert caught.value.code == "canal.login_refused"


def test_a_preview_takes_nothing(canal: Canal, port: int, tmp_path: Path) -> None:
    assert open_log(pipeline(tmp_path)).ends(["example"]).highs == {"example": {0: 0}}
    open_log(pipeline(tmp_path)).collect()
    assert canal.done == 0


def test_collecting_ends_at_the_sources_limits(canal: Canal, port: int, tmp_path: Path) -> None:
    shop = pipeline(tmp_path, max_entries=6)
    log = open_log(shop, right=when_free(shop, "a test"))
    for end in (1, 2, 3, 3):
        log.collect()
        assert log.ends(["example"]).highs["example"][0] == canal.done == end


@pytest.mark.parametrize(("changes", "said"), [
    ({}, "runs example"), ({"destination": "other"}, "canal.refused"), ({"connection": "canal_wrong"}, "login_refused"),
])  # fmt: skip
def test_doctor_checks_the_server(
    changes: dict[str, str], said: str, port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(pipeline(tmp_path, **changes).to_yaml())
    main(["doctor", str(file), "--json"])
    (line,) = [line for line in json.loads(capsys.readouterr().out) if line["check"] == "canal"]
    assert line["ok"] is (not changes) and said in line["message"] and "hidden" not in str(line)


# ---- the hook


def test_the_hook_speaks_with_the_server(canal: Canal, port: int) -> None:
    hook = CanalHook("canal_default", "example")
    assert hook.test_connection() == (True, f"canal: 127.0.0.1:{port} accepts the login, client id 1001")
    ok, message = CanalHook("canal_wrong").test_connection()
    assert not ok and message.startswith("canal: [canal.login_refused]") and " -> " in message
    with pytest.raises(CdcError, match=r"connect\(\)"):
        hook.get()
    hook.connect()
    hook.subscribe()
    first = hook.get(timeout=0.05)
    hook.rollback(first.id)
    again = hook.get(timeout=0.05)
    assert (first.id, again.id) == (1, 2) and first.entries == again.entries == canal.messages[0]
    hook.ack(again.id)
    hook.unsubscribe()
    hook.close()
    with hook.session() as session:
        assert session.get().entries == canal.messages[1]
    assert canal.done == 1


# ---- the drain


def drain(to: KafkaTarget | LandingFolder, **arguments: Any) -> dict[str, int]:
    operator = CanalDrainOperator(
        task_id="drain", destination="example", to=to, until_idle=timedelta(seconds=0.05), **arguments
    )
    return operator.execute({})


def entries_of(packets: Sequence[bytes]) -> list[bytes]:
    return [entry for packet in packets for entry in Messages.FromString(Packet.FromString(packet).body).messages]


def test_the_drain_writes_files(canal: Canal, port: int, tmp_path: Path) -> None:
    assert drain(LandingFolder(str(tmp_path))) == {"packets": 3, "entries": 17, "acknowledged": 3}
    assert drain(LandingFolder(str(tmp_path))) == {"packets": 0, "entries": 0, "acknowledged": 0}
    stored = [packet.data for _, packet in SegmentLog(str(tmp_path), "example").read(0, 3)]
    assert entries_of(stored) == entries() and canal.done == 3


def test_the_drain_acknowledges_only_what_kafka_confirmed(
    canal: Canal, port: int, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.common.compat.sdk import AirflowException

    conn = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DRAIN", json.dumps(conn))
    broker.create_topics({"canal.drained": 1})
    broker.create_topics({"canal.small": 1}, {"max.message.bytes": "100"})
    with pytest.raises(AirflowException, match=r"kafka\.record_refused"):
        drain(KafkaTarget("canal.small", "kafka_drain"))
    assert canal.done == 0

    def crashing(store: Callable[..., None]) -> Callable[..., None]:
        def stored_then_dead(self: KafkaWriter, *rest: Any) -> None:
            store(self, *rest)
            raise KeyboardInterrupt

        return stored_then_dead

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(KafkaWriter, "write", crashing(KafkaWriter.write))
        drain(KafkaTarget("canal.drained", "kafka_drain"))
    assert canal.done == 0
    monkeypatch.setattr(canal_targets, "RECORD_BYTES", 300)  # so that packets are cut
    assert drain(KafkaTarget("canal.drained", "kafka_drain"))["acknowledged"] == canal.done == 3

    from airflow_provider_cdc.sources.kafka_log import KafkaLog

    log = KafkaLog("kafka_drain")
    end = log.ends(["canal.drained"]).highs["canal.drained"][0]
    records = log.read({("canal.drained", 0): (0, end)}, end)["canal.drained", 0]
    assert end > 6 and entries_of([record.value or b"" for record in records]) == [*entries(), *entries()]


def test_the_drain_ends_at_its_limit(canal: Canal, port: int, tmp_path: Path) -> None:
    assert drain(LandingFolder(str(tmp_path)), max_entries=6)["packets"] == 1
    assert canal.done == 1
