# SPDX-License-Identifier: Apache-2.0
"""Hooks and the verb ``lag`` over one synced pipeline."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.errors import CdcError, DataError
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger

from .conftest import Connect
from .shop import Shop, rows, until

pytestmark = pytest.mark.airflow


def test_everything_of_a_pipeline_in_the_code_of_a_task(shop: Shop, connect: Connect) -> None:
    from airflow_provider_cdc import CdcHook, CdcLedgerHook, KafkaProgressHook

    hook = CdcHook(shop.document())
    assert hook.plan()["status"] == "new"
    before = hook.lag().records
    done = hook.sync(until(0))
    assert (done["status"], hook.sync(until(0))["repeated"]) == ("done", True)
    assert 0 < hook.lag().records < before

    customers = hook.read("shop.customers", columns=["id", "email"])
    assert sorted(customers.column_names) == ["email", "id"]
    written = rows(shop.lake, "shop", "customers")
    assert sorted(customers["id"].to_pylist()) == sorted(row["id"] for row in written)
    with pytest.raises(CdcError, match=r"table\.unknown.*shop\.customers"):
        hook.read("shop.custmers")

    ledger = Ledger(f"sqlite:///{shop.ledger}")
    state = ledger.tables("shop")
    (table_id,) = [key for key, document in state.items() if document["table"] == "orders"]
    with ledger.lease("shop", "a test") as lease:
        last = ledger.last("shop")
        assert last is not None
        batch = ledger.plan(lease, last.end, last.end, None)
        parked = {**state[table_id], "state": TableStatus.PARKED, "reason": "its key is gone"}
        ledger.commit(lease, batch.seq, {"status": "parked"}, {table_id: parked})
    with pytest.raises(DataError, match="its key is gone"):
        hook.read("shop.orders")
    assert hook.read("shop.customers").num_rows == len(written)

    connect("my_ledger", "cdc_ledger", {"sqlite_file": str(shop.ledger)})
    mine = CdcLedgerHook("my_ledger")
    assert mine.tables("shop")["shop.orders"].state == TableStatus.PARKED
    history = mine.schema_history("shop", "shop.customers")
    assert history[0][0] == 1 and history[0][1]["columns"]
    assert mine.quarantine("shop") == []
    kafka = KafkaProgressHook("shop_kafka")
    assert kafka.lag(hook.pipeline).records == hook.lag().records


def test_sensors_and_batches_record_the_history_of_the_lag(shop: Shop) -> None:
    from airflow_provider_cdc import CdcLagSensor, CdcSyncOperator

    CdcSyncOperator(task_id="sync", pipeline=shop.document(), until=until(0)).execute({})
    CdcLagSensor(task_id="lag", pipeline=shop.document(), max_records=0).poke({})
    answer = shop.run("lag", "--json")
    assert answer.code == 0, answer.err
    seen = answer.json
    assert seen["records"] == sum(seen["partitions"].values()) > 0
    assert 1 <= len(seen["history"]) <= 2, "one sample a minute"
    assert seen["history"][-1]["lag_records"] == seen["records"]
    text = shop.run("lag", "--since", "2026-01-01")
    assert text.code == 0 and "shopdb.shop.customers/" in text.out and "seen at" in text.out


def test_the_form_of_the_kafka_connection(shop: Shop, connect: Connect) -> None:
    from airflow_provider_cdc import KafkaProgressHook

    host, _, port = str(shop.connection["bootstrap.servers"]).rpartition(":")
    form = {"security_protocol": "PLAINTEXT", "sasl_mechanism": None, "ca_file": "", "ca_certificate": None}
    connect("formed", "cdc_kafka", form, host=host, port=int(port))
    ok, message = KafkaProgressHook("formed").test_connection()
    assert ok, message
    connect("wrong", "cdc_kafka", {**form, "sasl.kerberos.kinit.cmd": "run me"}, host=host, port=int(port))
    ok, message = KafkaProgressHook("wrong").test_connection()
    assert not ok and "not allowed" in message
