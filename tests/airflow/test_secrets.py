# SPDX-License-Identifier: Apache-2.0
"""Secrets of connections and values of rows are in nothing that a run leaves behind or sends, the lake apart."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable

from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins import batch_rows, pipeline_rows, quarantine_rows, schema_change_rows, table_rows
from tests.services import capture
from tests.services.broker import PASSWORD, Broker
from tests.unit.ledger.conftest import new_database

from . import dag_steps
from .dag_steps import Step
from .shop import DATA, Shop

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

pytestmark = pytest.mark.airflow

LEDGER_PASSWORD = "ledger-password-7f3a"
PLANTED = {
    "broker": PASSWORD,
    "a broker that refuses it": "wrong-password-91bc",
    "ledger": LEDGER_PASSWORD,
    "a ledger that refuses it": "wrong-ledger-44de",
    "private key": "key-password-5aa0",
    "S3 key": "AKIAPLANTED5EC2E7",
    "S3 secret": "planted/s3+secret",
    "S3 token": "planted-s3-token",
    "salt of masks": "planted-salt-88c2",
}
HIDDEN = {"shop.customers": {"columns": {"mask": {"email": "hash"}, "unlogged": ["phone"]}}}
DAGS = """
import os
from datetime import datetime
from pathlib import Path
from airflow.sdk import DAG, AssetAlias
from airflow_provider_cdc import (
    CdcCheckOperator, CdcDoctorOperator, CdcHealthSensor, CdcLagSensor, CdcNotifier, CdcPipeline, CdcPlanOperator,
    CdcReceivedSensor, CdcSyncOperator, CdcTableStateOperator, Freshness, NoParked, cdc_asset,
)
from datetime import timedelta

folder = Path(os.environ["SHOP_FOLDER"])
for name in ("good", "refused_broker", "refused_ledger"):
    shop = folder / f"{name}.yaml"
    with DAG(name, schedule=None, start_date=datetime(2026, 1, 1)):
        args = dict(pipeline=shop, trigger_rule="all_done")
        args |= dict(on_failure_callback=CdcNotifier(shop, print))
        tasks = [
            CdcDoctorOperator(task_id="doctor", **args),
            CdcPlanOperator(task_id="plan", until="now", **args),
            CdcReceivedSensor(task_id="received", until="2026-01-01T00:00:00Z", timeout=1, poke_interval=1, **args),
            CdcSyncOperator(task_id="sync", until="now", outlets=[cdc_asset(name), AssetAlias(name)], **args),
            CdcLagSensor(task_id="lag", max_records=0, timeout=1, poke_interval=1, deferrable=True, **args),
            CdcHealthSensor(task_id="health", timeout=1, poke_interval=1, **args),
            CdcTableStateOperator(task_id="states", **args),
            CdcCheckOperator(task_id="check", checks=[NoParked(), Freshness(timedelta(hours=1))], **args),
        ]
        for before, after in zip(tasks, tasks[1:]):
            before >> after
"""

# Stands in for the client that Airflow's extra `statsd` installs: it writes what would be sent.
STATSD = """
import os

class StatsClient:
    def __init__(self, *args, **more):
        pass

    def _write(self, *sent):
        with open(os.environ["METRICS_FILE"], "a") as file:
            print(*map(repr, sent), file=file)

    incr = decr = gauge = timing = set = lambda self, *args, **more: self._write(args, more)

    def timer(self, *args, **more):
        self._write(args, more)
        return Timer()


class Timer:
    def start(self):
        return self

    def stop(self, *args, **more):
        pass

    __enter__, __exit__ = start, stop
"""


@dataclass
class Sent:
    """Hold everything that the runs left and sent, by where it was."""

    parts: dict[str, str] = field(default_factory=dict)
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    values: set[str] = field(default_factory=set)
    emails: set[str] = field(default_factory=set)
    phones: set[str] = field(default_factory=set)
    lake: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def sent(
    request: pytest.FixtureRequest, filled: Broker, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Sent:
    folder = tmp_path_factory.mktemp("secrets")
    url = _ledger_of_another_user(request, postgres)
    output = _run(folder, _environment(folder, filled, postgres, url))
    _, *parts = output.split(f"\n{dag_steps.MARK}")
    results = [json.loads(part.rpartition(dag_steps.RESULT)[2].splitlines()[0]) for part in parts]
    made = Sent()
    made.states = dict(
        zip(("good", "refused_broker", "refused_ledger"), (one["tasks"] for one in results), strict=True)
    )
    for file in sorted(folder.rglob("*")):
        if file.is_file() and folder / "lake" not in file.parents:
            made.parts[str(file.relative_to(folder))] = file.read_bytes().decode("utf-8", "replace")
    lake = folder / "lake" / "good"
    made.values = _long_texts(lake)
    made.emails, made.phones = _values_of("email"), _values_of("phone")
    made.lake = {str(file.relative_to(lake)): _text_of(file) for file in sorted(lake.rglob("*")) if file.is_file()}
    with Database(url, read_only=True).reading() as connection:
        made.parts["page"] = json.dumps(_page(connection))
    return made


def _ledger_of_another_user(request: pytest.FixtureRequest, postgres: Postgres) -> str:
    """Return the URL of a database whose owner has a password of its own."""
    url = new_database(request)
    name = url.rpartition("/")[2]
    with psycopg.connect(postgres.conninfo, autocommit=True) as server:
        server.execute(f"CREATE ROLE r{name} LOGIN PASSWORD '{LEDGER_PASSWORD}'")  # type: ignore[arg-type]
        server.execute(f"ALTER DATABASE {name} OWNER TO r{name}")  # type: ignore[arg-type]
    return f"postgresql://r{name}:{LEDGER_PASSWORD}@127.0.0.1:{postgres.port}/{name}"


def _environment(folder: Path, broker: Broker, postgres: Postgres, url: str) -> dict[str, str]:
    """Write the pipelines, and return an environment with all connections."""
    kafka = {
        "conn_type": "kafka",
        "extra": {**broker.sasl_settings(), "ssl.key.password": PLANTED["private key"]},
    }
    ledger = {"conn_type": "cdc_ledger", "host": "127.0.0.1", "port": postgres.port, "password": LEDGER_PASSWORD}
    ledger |= {"login": f"r{url.rpartition('/')[2]}", "schema": url.rpartition("/")[2]}
    token = {"aws_session_token": PLANTED["S3 token"]}
    store = {"conn_type": "aws", "login": PLANTED["S3 key"], "password": PLANTED["S3 secret"], "extra": token}
    refused = {**kafka, "extra": broker.sasl_settings(PLANTED["a broker that refuses it"])}
    connections = {
        "good_kafka": kafka,
        "good_ledger": ledger,
        "store": store,
        "refused_kafka": refused,
        "refused_ledger": {**ledger, "password": PLANTED["a ledger that refuses it"]},
        "salt": {"conn_type": "generic", "password": PLANTED["salt of masks"]},
    }
    for name in ("good", "refused_broker", "refused_ledger"):
        shop = Shop(folder, {})
        shop.changes = {
            "name": name,
            "source": {"connection": "refused_kafka" if name == "refused_broker" else "good_kafka"},
            "sink": {"root": str(folder / "lake" / name), "storage_connection": "store"},
            "ledger": "refused_ledger" if name == "refused_ledger" else "good_ledger",
            "tables": HIDDEN,
            "mask_connection": "salt",
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(shop.document()))
    transport = {"type": "file", "log_file_path": str(folder / "lineage.jsonl"), "append": True}
    (folder / "site").mkdir()
    (folder / "site" / "statsd.py").write_text(STATSD)
    environment = Shop(folder, {}).env()
    return {
        **environment,
        "PYTHONPATH": f"{folder / 'site'}:{environment['PYTHONPATH']}",
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(document) for name, document in connections.items()},
        "SHOP_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__METRICS__STATSD_ON": "True",
        "METRICS_FILE": str(folder / "metrics.txt"),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "tests",
    }


def _run(folder: Path, environment: dict[str, str]) -> str:
    dags = folder / "dags"
    dags.mkdir()
    (dags / "dags.py").write_text(DAGS)
    steps = [Step(name, "2026-11-20T00:00:00+00:00") for name in ("good", "refused_broker", "refused_ledger")]
    file = dag_steps.write(folder / "steps.json", steps)
    command = [sys.executable, str(Path(dag_steps.__file__)), str(dags), str(file)]
    with (folder / "output.txt").open("w") as output:
        subprocess.run(command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT, timeout=240)
    return (folder / "output.txt").read_text()


def _long_texts(lake: Path) -> set[str]:
    """Return texts of rows that cannot stand elsewhere by chance, as a member of an ENUM in a statement can."""
    texts = set()
    for table in (file.parent.parent for file in lake.glob("*/*/_delta_log/00000000000000000000.json")):
        for row in DeltaTable(str(table)).to_pyarrow_table().to_pylist():
            texts |= {
                value
                for value in row.values()
                if isinstance(value, str) and len(value) >= 12 and not value.isidentifier()
            }
    return texts


def _values_of(column: str) -> set[str]:
    """Return the values that the log has of a column."""
    member = re.compile(rb'"%b":"([^"]+)"' % column.encode())
    values = (value for record in capture.read(DATA) for value in member.findall(record.value or b""))
    return {value.decode() for value in values}


def _text_of(file: Path) -> str:
    """Return the bytes of a file as text, and the values of one that is compressed."""
    values = repr(pq.read_table(file).to_pylist()) if file.suffix == ".parquet" else ""
    return file.read_bytes().decode("utf-8", "replace") + values


def _page(connection: Any) -> list[Any]:
    """Return all that the page shows of the pipelines."""
    listed = pipeline_rows.pipeline_page(connection, {"good", "refused_broker"}, search="", offset=0, limit=50)
    shown: list[Any] = [listed]
    for name in (line["name"] for line in listed["pipelines"]):
        shown.append(batch_rows.batches(connection, name, {"good"}, before=None, limit=50))
        shown.append(table_rows.tables(connection, name, state=None, search="", offset=0, limit=50))
        shown.append(quarantine_rows.quarantine(connection, name, before=None))
        shown.append(schema_change_rows.schema_changes(connection, name, before=None, limit=50))
    return shown


def test_the_secrets_were_used(sent: Sent) -> None:
    assert sent.states["good"]["sync"] == "success", sent.parts["output.txt"][-4000:]
    assert sent.states["refused_broker"]["sync"] == sent.states["refused_ledger"]["sync"] == "failed"
    assert "cdc.batch.done" in sent.parts["metrics.txt"]
    assert '"cdc_batch"' in sent.parts["lineage.jsonl"]
    assert '"good"' in sent.parts["page"]
    assert "Task sync of DAG refused_broker" in sent.parts["output.txt"], "the notifier's text"
    assert any(name.endswith("airflow.db") for name in sent.parts), "XCom, rendered fields, asset events"


@pytest.mark.parametrize("what", PLANTED)
def test_a_secret_is_nowhere(sent: Sent, what: str) -> None:
    secret = PLANTED[what]
    assert [name for name, text in sent.parts.items() if secret in text] == []


def holding(parts: dict[str, str], values: set[str]) -> set[tuple[str, str]]:
    return {(name, value) for name, text in parts.items() for value in values if value in text}


def test_values_of_rows_are_nowhere(sent: Sent) -> None:
    assert len(sent.values) > 100
    assert holding(sent.parts, sent.values) == set()


def test_values_of_masked_and_excluded_columns_are_in_no_table(sent: Sent) -> None:
    hidden = sent.emails | sent.phones
    tables = {name: text for name, text in sent.lake.items() if not name.startswith("_cdc")}
    assert sent.emails and sent.phones and any("customers" in name for name in tables)
    assert holding({**tables, **sent.parts}, hidden) == set()


def test_values_that_are_kept_out_of_the_change_log_are_nowhere_in_the_lake(sent: Sent) -> None:
    assert holding(sent.lake, sent.emails), "the change log has masked ones"
    assert holding(sent.lake, sent.phones) == set()
