# SPDX-License-Identifier: Apache-2.0
"""The Spark job a skilled user would write by hand for the same topics: from_json, row_number, MERGE.

`spark-submit tests/bench/handwritten.py BOOTSTRAP RANGES ROOT TABLES [--plain]`; RANGES as in `bare.py`, TABLES a
JSON list. It knows what the general tool must find out: the columns and their types, that no DDL comes, that amounts
are not negative. Only the members of the payload that it needs are named, so the embedded schema is skipped.
"""

from __future__ import annotations

import argparse
import json
import threading
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

_COLUMNS = {
    "id": "BIGINT",
    "customer": "STRING",
    "email": "STRING",
    "street": "STRING",
    "note": "STRING",
    "amount": "STRING",
    "quantity": "INT",
    "created": "BIGINT",
    "weight": "DOUBLE",
    "due": "INT",
    "status": "TINYINT",
    "updated": "STRING",
}
_TARGET = {
    **_COLUMNS,
    "amount": "DECIMAL(12, 2)",
    "created": "TIMESTAMP_NTZ",
    "due": "DATE",
    "updated": "TIMESTAMP",
}
_PAYLOAD = f"""STRUCT<op: STRING, source: STRUCT<table: STRING, file: STRING, pos: BIGINT, row: INT>,
before: STRUCT<id: BIGINT>, after: STRUCT<{", ".join(f"{name}: {kind}" for name, kind in _COLUMNS.items())}>>"""
_TYPED = [
    "key as id",
    "customer",
    "email",
    "street",
    "note",
    "cast(cast(conv(hex(unbase64(amount)), 16, 10) as decimal(20, 0)) / 100 as decimal(12, 2)) as amount",
    "quantity",
    "cast(timestamp_millis(created) as timestamp_ntz) as created",
    "weight",
    "date_from_unix_date(due) as due",
    "status",
    "cast(updated as timestamp) as updated",
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("ranges", type=json.loads)
    parser.add_argument("root")
    parser.add_argument("tables", type=json.loads)
    parser.add_argument("--plain", action="store_true", help="records without embedded schema")
    options = parser.parse_args()
    spark = (
        SparkSession.builder.appName("by hand")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        # Delta's own default of 50 tasks for the log of a small table costs more than everything else here
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    latest = _latest(_changes(spark, options.bootstrap, options.ranges, options.plain))
    if len(options.tables) == 1:
        _merge(spark, latest.drop("table"), f"{options.root}/{options.tables[0]}")
    else:
        latest.persist().createOrReplaceGlobalTempView("latest")

        # a session a thread: a session a table would compile every generated class again for each of them
        sessions = threading.local()

        def one(table: str) -> None:
            if not hasattr(sessions, "own"):
                sessions.own = spark.newSession()
            session = sessions.own
            source = session.table("global_temp.latest").where(F.col("table") == table).drop("table")
            _merge(session, source, f"{options.root}/{table}")

        latest.count()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, options.tables))
    spark.stop()


def _changes(spark: SparkSession, bootstrap: str, ranges: dict[str, dict[str, list[int]]], plain: bool) -> DataFrame:
    starts, ends = ({t: {p: span[end] for p, span in spans.items()} for t, spans in ranges.items()} for end in (0, 1))
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", ",".join(ranges))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .load()
        .where("value is not null")
    )
    kind = _PAYLOAD if plain else f"STRUCT<payload: {_PAYLOAD}>"
    parsed = records.select(F.from_json(F.col("value").cast("string"), kind).alias("m"))
    return parsed.select("m.*") if plain else parsed.select("m.payload.*")


def _latest(changes: DataFrame) -> DataFrame:
    key = F.coalesce("after.id", "before.id")
    newest = Window.partitionBy("table", "key").orderBy(F.desc("file"), F.desc("pos"), F.desc("row"))
    flat = changes.select("source.table", "source.file", "source.pos", "source.row", "op", key.alias("key"), "after")
    last = flat.withColumn("n", F.row_number().over(newest)).where("n = 1")
    columns = last.select("table", (F.col("op") == "d").alias("gone"), "key", "after.*").drop("id")
    return columns.selectExpr("table", "gone", *_TYPED)


def _merge(spark: SparkSession, source: DataFrame, path: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in _TARGET.items())
    spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{path}` ({columns}) USING DELTA")
    source.createOrReplaceTempView("newest")
    sets = ", ".join(f"t.{name} = s.{name}" for name in _TARGET)
    values = ", ".join(f"s.{name}" for name in _TARGET)
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING newest s ON t.id = s.id WHEN MATCHED AND s.gone THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({', '.join(_TARGET)}) VALUES ({values})"
    )


if __name__ == "__main__":
    main()
