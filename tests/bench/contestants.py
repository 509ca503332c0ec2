# SPDX-License-Identifier: Apache-2.0
"""Run the contestants: each turns one source into tables in a folder of its own, as whole processes."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.engine.jars import fetch, jar_cache, lock_of
from airflow_provider_cdc.engine.java import find_java
from tests.bench.structure import DATA_TOPICS, DATABASE, EXPECTED, SCHEMA_TOPIC
from tests.cross_format.canal_values import ZONE
from tests.services.spark_cluster import SparkCluster

HERE = Path(__file__).parent
CLEARED = "cleared-"
_MANY_FILES = 2_000
Ranges = Mapping[str, Mapping[int, tuple[int, int]]]
"""Offsets from (inclusive) to (exclusive) by topic and partition."""


DEBEZIUM = {"topics": DATA_TOPICS, "format": "debezium-json", "schema_topic": SCHEMA_TOPIC}


@dataclass
class Arena:
    """Hold what all contestants need.

    ranges: the data topics' offsets that are to be read now; ours finds them out itself.
    pipeline: source and tables as ours states them.
    policy: further keys of ours.
    cluster: runs the batches of `OnCluster`.
    registry: address of the schema registry, where there is one.
    """

    folder: Path
    bootstrap: str
    tables: list[str] = field(default_factory=list)
    ranges: Ranges = field(default_factory=dict)
    embedded: bool = True
    pipeline: Mapping[str, Any] = field(default_factory=lambda: {"source": DEBEZIUM})
    policy: Mapping[str, Any] = field(default_factory=dict)
    cluster: SparkCluster | None = None
    registry: str | None = None

    @property
    def ranges_text(self) -> str:
        return json.dumps(self.ranges)


def clear(folder: Path) -> None:
    """Make way for another run; a folder of many files is only moved, and goes at the end of the bench.

    ext4 looks at each file that was deleted in the last minutes before it creates one (``recently_deleted``): after
    1,000 tables were deleted, the next 1,000 cost an eighth more.
    """
    if len(list(itertools.islice(folder.rglob("*"), _MANY_FILES))) < _MANY_FILES:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.rename(folder.with_name(f"{CLEARED}{uuid.uuid4().hex}"))


class Contestant:
    """One way to the tables; `root` is where they lie."""

    name: str
    spark = False

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.folder = arena.folder / self.name.replace(" ", "-")
        self.root = self.folder / "lake"

    def fresh(self) -> None:
        """Begin with nothing."""
        clear(self.folder)
        self.root.mkdir(parents=True)

    def save(self) -> None:
        """Remember everything there is now for `restore`."""
        clear(self._saved)
        shutil.copytree(self.folder, self._saved)

    def restore(self) -> None:
        """Go back to what `save` saw."""
        clear(self.folder)
        shutil.copytree(self._saved, self.folder)

    @property
    def _saved(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.saved")

    def table(self, name: str) -> Path:
        return self.root / name

    def rows(self, name: str) -> pa.Table:
        """Read a table."""
        from deltalake import DeltaTable, QueryBuilder

        target = DeltaTable(str(self.table(name)))
        return pa.table(QueryBuilder().register("t", target).execute("SELECT * FROM t").read_all())

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def servers(self) -> list[int]:
        """Return processes that work for the command, and that it has not started."""
        return []


class Ours(Contestant):
    """`airflow-cdc sync` of this project."""

    engine = "spark"
    name = "sync spark"
    spark = True
    settings: ClassVar[Mapping[str, Any]] = {}

    def fresh(self) -> None:
        super().fresh()
        pipeline = {
            "name": "bench",
            **self.arena.pipeline,
            "source": {"connection": "bench_kafka", **self.arena.pipeline["source"]},
            "sink": {"type": "delta", "root": str(self.root)},
            "policy": {"engine": self.engine, **self.arena.pipeline.get("policy", {}), **self.arena.policy},
            "ledger": f"sqlite:///{self.folder}/ledger.db",
            **self.settings,
        }
        # JSON is YAML too
        (self.folder / "pipeline.yaml").write_text(json.dumps(pipeline, indent=1))

    def forget(self) -> None:
        """Let the ledger know nothing of the last batch, as if the command had died before it could say so."""
        for file in self.folder.glob("ledger.db*"):
            file.unlink()
        for file in self._saved.glob("ledger.db*") if self._saved.exists() else ():
            shutil.copy(file, self.folder / file.name)

    def forget_result(self) -> None:
        """Return the same, when the engine died before it could write its result."""
        self.forget()
        newest = max(self.root.glob("_cdc/*/log/*"))
        (newest / "result.json").unlink(missing_ok=True)

    def table(self, name: str) -> Path:
        return self.root / DATABASE / name

    def job(self) -> Path:
        """Return the newest batch's job document."""
        return max(self.root.glob("_cdc/*/jobs/*/*/job.json"), key=lambda path: int(path.parent.parent.name))

    def command(self) -> list[str]:
        return [sys.executable, "-m", "airflow_provider_cdc.cli", "sync", str(self.folder / "pipeline.yaml"), "--json"]

    def environment(self) -> dict[str, str]:
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": self.arena.bootstrap}}
        registry = {"conn_type": "http", "host": self.arena.registry}
        return {
            "AIRFLOW_HOME": str(self.arena.folder / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW_CONN_BENCH_KAFKA": json.dumps(connection),
            **({"AIRFLOW_CONN_BENCH_REGISTRY": json.dumps(registry)} if self.arena.registry else {}),
        }


class Inline(Ours):
    """The same without a JVM."""

    engine = "inline"
    name = "sync inline"
    spark = False


class OnCluster(Ours):
    """The same on a standalone cluster, whose master and workers run already."""

    name = "sync cluster"
    settings: ClassVar[Mapping[str, Any]] = {
        "spark": {"connection": "bench_cluster", "conf": {"spark.executor.memory": "512m"}}
    }

    def environment(self) -> dict[str, str]:
        assert self.arena.cluster is not None
        connection = {"conn_type": "spark", "host": self.arena.cluster.master}
        return {**super().environment(), "AIRFLOW_CONN_BENCH_CLUSTER": json.dumps(connection)}

    def servers(self) -> list[int]:
        assert self.arena.cluster is not None
        return self.arena.cluster.pids()


class HandWritten(Contestant):
    """The Spark job of `handwritten.py`."""

    name = "hand-written"
    spark = True

    def command(self) -> list[str]:
        java = find_java()
        jars = fetch(lock_of("spark", "4.1"), jar_cache(), java.executable, lambda text: print(text, file=sys.stderr))
        spark = _spark_home() / "bin" / "spark-submit"
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.folder / "spark"),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        return [
            str(spark),
            "--master=local[*]",
            "--driver-memory=4g",
            f"--jars={','.join(map(str, jars))}",
            *(f"--conf={name}={value}" for name, value in settings.items()),
            str(HERE / "handwritten.py"),
            self.arena.bootstrap,
            self.arena.ranges_text,
            str(self.root),
            json.dumps(self.arena.tables),
            *([] if self.arena.embedded else ["--plain"]),
        ]

    def environment(self) -> dict[str, str]:
        return {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(_spark_home()),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }


class Afternoon(Contestant):
    """The job of `afternoon.py`, without Spark."""

    name = "afternoon's job"

    def command(self) -> list[str]:
        job = str(HERE / "afternoon.py")
        return [sys.executable, job, self.arena.bootstrap, self.arena.ranges_text, str(self.root), ZONE]


class Flink(Contestant):
    """The job of `flink.py`: one table of Paimon, by Flink SQL."""

    name = "Flink SQL, Paimon"

    def command(self) -> list[str]:
        return self._job(ZONE)

    def rows(self, name: str) -> pa.Table:
        printed = subprocess.run([*self._job("UTC"), "--read"], check=True, capture_output=True, text=True).stdout
        rows = [json.loads(line, parse_int=str, parse_float=str) for line in printed.splitlines()]
        columns = {}
        for member in EXPECTED:
            texts = pa.array([row[member.name] for row in rows], pa.string())
            zoned = pa.types.is_timestamp(member.type) and member.type.tz
            columns[member.name] = (pc.binary_join_element_wise(texts, "Z", "") if zoned else texts).cast(member.type)
        return pa.table(columns)

    def _job(self, zone: str) -> list[str]:
        (topic,) = self.arena.ranges
        job = [sys.executable, "-m", "tests.bench.flink", self.arena.bootstrap, topic, str(self.folder)]
        return [*job, zone]


class Bare(Contestant):
    """The consumer loop of `bare.py`, which makes no tables."""

    name = "bare loop"
    envelope = False

    def command(self) -> list[str]:
        how = ("embedded" if self.arena.embedded else "plain") if self.envelope else "none"
        return [
            sys.executable,
            str(HERE / "bare.py"),
            self.arena.bootstrap,
            self.arena.ranges_text,
            f"--envelope={how}",
        ]


class BareEnvelope(Bare):
    """The same, decoding each record's envelope."""

    name = "bare loop, envelope"
    envelope = True


class Land(Contestant):
    """The land stage of a batch that ran, in one process."""

    name = "land alone"

    def __init__(self, arena: Arena, ours: Ours) -> None:
        super().__init__(arena)
        self._ours = ours

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.bench.parts", "land", str(self._ours.job()), str(self.root)]


class Decode(Land):
    """Decoding alone, of records read before; prints its own CPU time."""

    name = "decode alone"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.bench.parts", "decode", str(self._ours.job()), "60000"]


class Plain(Land):
    """The same records through a plain decoder that makes a dict of every row."""

    name = "plain decoder"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.bench.parts", "plain", str(self._ours.job()), "60000"]


class FormatEnvelope(Contestant):
    """The bare consumer loop, taking only each record's outermost message apart."""

    name = "bare loop, envelope"

    def command(self) -> list[str]:
        name = self.arena.pipeline["source"]["format"]
        return [sys.executable, "-m", "tests.bench.envelopes", self.arena.bootstrap, self.arena.ranges_text, name]


def _spark_home() -> Path:
    import importlib.util

    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])
