# SPDX-License-Identifier: Apache-2.0
"""Write Canal's flat JSON of one table into Paimon with Flink SQL, or print the table that came of it.

`python -m tests.bench.flink BOOTSTRAP TOPIC FOLDER ZONE` reads the topic to its end; with `--read` it prints the rows
of the table as lines of JSON, times in ZONE. Flink's mini cluster runs in one Java next to it. It knows the one
structure of the table, and no DDL, order across partitions, late or odd record.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.bench.formats_data import CREATE
from tests.services.java_services import JavaServices

LOCK = Path(__file__).with_name("flink.lock")
_OF_SPARK = ("hadoop-client-api", "hadoop-client-runtime", "commons-logging")
# a job that runs for a minute or longer: not what a service of a test is started with
_FLAGS = (
    "-Xmx3g",
    "-XX:TieredStopAtLevel=4",
    "-XX:-UseSerialGC",
    "-XX:+UseG1GC",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)
_TYPES = {"VARCHAR": "STRING", "DATETIME": "TIMESTAMP(6)", "TIMESTAMP": "TIMESTAMP_LTZ(6)"}
_SETTINGS = {
    "parallelism.default": "2",
    "execution.checkpointing.interval": "60s",
    "restart-strategy.type": "none",
    "table.exec.sink.upsert-materialize": "NONE",  # Paimon demands it
}


_COLUMNS = re.findall(r"([a-z]+) ([A-Z]+(?:\(12,2\))?)", CREATE.partition("(")[2])


def columns(*, as_texts: bool = False) -> str:
    """Return the columns of the bench's table in Flink's SQL.

    :param as_texts: whether those with a time zone are the texts that Canal writes.
    """
    types = {**_TYPES, "TIMESTAMP": "TIMESTAMP(6)"} if as_texts else _TYPES
    return ", ".join(f"`{name}` {types.get(kind, kind)}" for name, kind in _COLUMNS)


def values(target: str) -> str:
    """Return the columns as values of a type for those with a time zone, by the session's."""
    return ", ".join(f"CAST(`{name}` AS {target})" if kind == "TIMESTAMP" else f"`{name}`" for name, kind in _COLUMNS)


class Flink:
    """Flink's SQL in a Java of its own, with a catalog `lake`.

    :param folder: of the catalog's tables.
    """

    def __init__(self, folder: Path) -> None:
        self._java = JavaServices("Flink", LOCK, _OF_SPARK, folder / "flink.log", _FLAGS)
        self._folder = folder

    def environment(self, mode: str, zone: str) -> Any:
        """Return a session, `inStreamingMode` or `inBatchMode`."""
        api = self._java.jvm.org.apache.flink.table.api
        session = api.TableEnvironment.create(getattr(api.EnvironmentSettings.newInstance(), mode)().build())
        for name, value in {**_SETTINGS, "table.local-time-zone": zone}.items():
            session.getConfig().set(name, value)
        lake = self._folder / "lake"
        session.executeSql(f"CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = 'file://{lake}')")
        return session

    def stop(self) -> None:
        """End its Java."""
        self._java.server.stop()


def write(session: Any, bootstrap: str, topic: str) -> None:
    """Write the newest row of each key of a topic into the table."""
    session.executeSql("CREATE DATABASE lake.bench")
    key = "PRIMARY KEY (id) NOT ENFORCED"
    session.executeSql(f"CREATE TABLE lake.bench.orders ({columns()}, {key}) WITH ('bucket' = '2')")
    source = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "canal-json",
    }
    options = ", ".join(f"'{name}' = '{value}'" for name, value in source.items())
    session.executeSql(f"CREATE TABLE source ({columns(as_texts=True)}) WITH ({options})")
    _end(session.executeSql(f"INSERT INTO lake.bench.orders SELECT {values('TIMESTAMP_LTZ(6)')} FROM source"))


def read(session: Any, folder: Path) -> None:
    """Print the rows of the table."""
    options = f"'connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'json'"
    session.executeSql(f"CREATE TABLE printed ({columns(as_texts=True)}) WITH ({options})")
    _end(session.executeSql(f"INSERT INTO printed SELECT {values('TIMESTAMP(6)')} FROM lake.bench.orders"))
    for file in sorted(folder.iterdir()):
        sys.stdout.write(file.read_text(encoding="utf-8"))


def _end(result: Any) -> None:
    getattr(result, "await")()  # a word of Python


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.flink", description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("folder", type=Path)
    parser.add_argument("zone")
    parser.add_argument("--read", action="store_true", help="print what was written")
    options = parser.parse_args()
    flink = Flink(options.folder)
    try:
        if options.read:
            read(flink.environment("inBatchMode", options.zone), options.folder / "printed")
        else:
            write(flink.environment("inStreamingMode", options.zone), options.bootstrap, options.topic)
    except Py4JJavaError as problem:
        sys.exit(str(problem))  # while Java is there to say it
    finally:
        flink.stop()


if __name__ == "__main__":
    main()
