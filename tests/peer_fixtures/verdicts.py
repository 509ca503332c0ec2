# SPDX-License-Identifier: Apache-2.0
"""State the verdict on each file that other projects publish: decoded as they expect, or why not.

Paths are below ``fixtures/peers``; ``X.expected.jsonl`` belongs to the row of X.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equal:
    """Decoded as ``format``, the file gives exactly the changes that its project expects."""

    format: str


@dataclass(frozen=True)
class Completed:
    """Records lack what the tool always writes and are refused; with it added they give exactly what is expected.

    :param refused: numbers of the records that are refused as published, None for all.
    """

    format: str
    why: str
    refused: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Refused:
    """Every record is refused, and that is what is expected.

    :param code: of the error.
    """

    format: str
    code: str
    why: str


@dataclass(frozen=True)
class State:
    """Changes replayed by key in plain Python give the project's tables after each of its steps."""

    format: str


@dataclass(frozen=True)
class Values:
    """The file pairs a column's type and value with what the tool writes; decoded and typed, that is the value."""

    format: str


@dataclass(frozen=True)
class OutOfScope:
    """None of the product's formats: ``detect`` names none, and none takes a record for a row or DDL."""

    why: str


Verdict = Equal | Completed | Refused | State | Values | OutOfScope

_PAIMON = "paimon/paimon-flink/paimon-flink-cdc/src/test/resources/"
_ALIYUN, _AWS, _CANAL, _DEBEZIUM, _MAXWELL, _OGG = (
    f"{_PAIMON}kafka/{name}/" for name in ("aliyun", "aws-dms", "canal", "debezium", "maxwell", "ogg")
)
_FLINK = "flink/flink-formats/flink-json/src/test/resources/"
_FLINK_CDC = "flink-cdc/flink-cdc-connect/flink-cdc-source-connectors/flink-connector-mysql-cdc/src/test/resources/"
_SERDE = "debezium/debezium-connector-common/src/test/resources/json/"
_PAGES = "debezium/documentation/modules/ROOT/"
_ICEBERG = "debezium-server-iceberg/debezium-server-iceberg-sink/src/test/resources/json/"
_DRS = "data-replication-service/umn/source/real-time_synchronization/operation_reference_in_synchronization_scenarios/"
_INLONG = "inlong/inlong-sort/sort-formats/format-row/format-json-v1.18/src/test/resources/"
_SEATUNNEL = "seatunnel/seatunnel-formats/seatunnel-format-json/src/test/resources/"

_canal, _debezium = Equal("canal-json"), Equal("debezium-json")

_no_place = Completed(
    "debezium-json",
    "the rows were written by hand: streamed, yet source.file is empty, where the connector always states the file"
    " (docs/wire/debezium-dtle.md B1); without a place an insert, an update and a delete of one key have no order",
)
_no_source = Completed(
    "debezium-json", "its test leaves source out; the connector always writes it (docs/wire/debezium-dtle.md B1)"
)

_maxwell = OutOfScope("Maxwell is not among the formats")
_maxwell_script = OutOfScope("SQL with the messages that Maxwell writes for it; Maxwell is not among the formats")
_aws = OutOfScope("AWS DMS is not among the formats")
_ogg = OutOfScope("Oracle GoldenGate is not among the formats")
_dataworks = OutOfScope(
    "the form that Alibaba's DataWorks itself writes (schema.dataColumn, payload.sequenceId), not the one that"
    " OceanBase calls Dataworks 2.0 (schema.column, payload.scn): docs/wire/oceanbase-oms.md 5"
)
_sql = OutOfScope("the SQL script behind the debezium-data-schema files; it holds no record")
_flattened = OutOfScope("a row flattened by ExtractNewRecordState: without op, source and images it is not a change")

VERDICTS: dict[str, Verdict] = {
    "README.md": OutOfScope("says what the files are"),
    "alibaba-canal-issues/issue-3418.jsonl": _canal,
    f"{_DRS}kafka_message_format.rst.jsonl": Equal("drs-json"),
    f"{_SERDE}serde-unknown-property.json": _debezium,
    f"{_SERDE}serde-unwrapped.json": _flattened,
    f"{_SERDE}serde-update.json": _debezium,
    f"{_SERDE}serde-with-schema.json": _debezium,
    f"{_SERDE}serde-without-schema.json": _debezium,
    f"{_PAGES}pages/connectors/sqlserver.adoc.jsonl": OutOfScope(
        "SQL Server: its connector gives log sequence numbers instead of a binlog's file and place; the format is"
        " that of the MySQL and MariaDB connectors"
    ),
    f"{_PAGES}pages/transformations/event-flattening.adoc.jsonl": Completed(
        "debezium-json", "the page prints placeholders: ts_ms is the text ..., source is empty"
    ),
    f"{_PAGES}partials/modules/all-connectors/shared-mariadb-mysql.adoc.jsonl": Completed(
        "debezium-json",
        "the page prints a row with an empty source and numbers in quotes (record 1), and the frame of an envelope with"
        " an empty payload (record 2)",
        refused=(1, 2),
    ),
    f"{_ICEBERG}serde-unnested-order-key-withschema.json": OutOfScope("the key of a record without the record"),
    f"{_ICEBERG}serde-unnested-order-val-withschema.json": _debezium,
    f"{_ICEBERG}serde-update.json": _debezium,
    f"{_ICEBERG}serde-with-schema.json": _debezium,
    f"{_ICEBERG}serde-with-schema2.json": OutOfScope("a schema of Kafka Connect without a message"),
    f"{_ICEBERG}unwrap-with-schema.json": _flattened,
    "dtle/driver/kafka/kafka3_test.cases.jsonl": Values("dtle-json"),
    "dtle-docs-cn/5/5.3_kafka_message_format.md.jsonl": Equal("dtle-json"),
    f"{_FLINK}canal-data-with-init.txt": _canal,
    f"{_FLINK}canal-data.txt": _canal,
    f"{_FLINK}debezium-data-schema-exclude.txt": _debezium,
    f"{_FLINK}debezium-data-schema-include.txt": _debezium,
    f"{_FLINK}maxwell-data.txt": _maxwell,
    f"{_FLINK_CDC}ddl/column_type_test.sql": _sql,
    f"{_FLINK_CDC}ddl/column_type_test_mysql8.sql": _sql,
    f"{_FLINK_CDC}file/debezium-data-schema-exclude-with-numeric-decimal.json.jsonl": _no_source,
    f"{_FLINK_CDC}file/debezium-data-schema-exclude.json.jsonl": _no_source,
    f"{_FLINK_CDC}file/debezium-data-schema-include.json.jsonl": _debezium,
    "hudi/hudi-utilities/src/test/resources/canal-data.txt": _canal,
    f"{_INLONG}canal-json-inlong-data.txt": _canal,
    "maxwell/src/test/resources/json/encrypted-user-insert.json": _maxwell,
    "maxwell/src/test/resources/json/encrypted-user-update.json": _maxwell,
    "maxwell/src/test/resources/json/user-insert.json": _maxwell,
    "maxwell/src/test/resources/json/user-update.json": _maxwell,
    "maxwell/src/test/resources/sql/json/bootstrap-js-filters.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-json-type.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-multiple-row-with-whereclause.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-multiple-row.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-no-pk.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-second-server.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-single-row.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/bootstrap-whitelist.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_bignum.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_blob.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_case_insensitive.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_charsets.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_create_like.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_invalid_time.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_json.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_minimal.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_set.jsonl": _maxwell_script,
    "maxwell/src/test/resources/sql/json/test_ucs2.jsonl": _maxwell_script,
    f"{_ALIYUN}table/event/event-delete.txt": _dataworks,
    f"{_ALIYUN}table/event/event-insert.txt": _dataworks,
    f"{_ALIYUN}table/event/event-update-in-one.txt": _dataworks,
    f"{_AWS}database/include/topic0/aws-dms-data-1.txt": _aws,
    f"{_AWS}table/schemaevolution/aws-dms-data-1.txt": _aws,
    f"{_AWS}table/schemaevolution/aws-dms-data-2.txt": _aws,
    f"{_AWS}table/schemaevolution/aws-dms-data-3.txt": _aws,
    f"{_AWS}table/schemaevolution/aws-dms-data-4.txt": _aws,
    f"{_AWS}table/schemaevolution/expected_state.json": _aws,
    f"{_AWS}table/startupmode/aws-dms-data-1.txt": _aws,
    f"{_AWS}table/startupmode/aws-dms-data-2.txt": _aws,
    f"{_AWS}table/startupmode/expected_state.json": _aws,
    f"{_AWS}table/watermark/aws-dms-data-1.txt": _aws,
    f"{_CANAL}database/include/topic0/canal-data-1.txt": _canal,
    f"{_CANAL}database/incomplete/canal-data-1.txt": Completed(
        "canal-json", "the row names neither database nor table; Canal writes both (docs/wire/canal.md 5.2)"
    ),
    f"{_CANAL}table/alltype/canal-data.txt": _canal,
    f"{_CANAL}table/computedcolumn/canal-data-1.txt": _canal,
    f"{_CANAL}table/computedcolumn/canal-data-2.txt": _canal,
    f"{_CANAL}table/event/event-delete.txt": _canal,
    f"{_CANAL}table/event/event-insert.txt": _canal,
    f"{_CANAL}table/event/event-row.txt": _canal,
    f"{_CANAL}table/event/event-update.txt": _canal,
    f"{_CANAL}table/event/expected_state.json": State("canal-json"),
    f"{_CANAL}table/nononddldata/canal-data-1.txt": _canal,
    f"{_CANAL}table/nonpk/canal-data-1.txt": _canal,
    f"{_CANAL}table/nonpk/expected_state.json": State("canal-json"),
    f"{_CANAL}table/schemaevolution/canal-data-1.txt": _canal,
    f"{_CANAL}table/schemaevolution/canal-data-2.txt": _canal,
    f"{_CANAL}table/schemaevolution/canal-data-3.txt": _canal,
    f"{_CANAL}table/schemaevolution/canal-data-4.txt": _canal,
    f"{_CANAL}table/schemaevolution/canal-data-5.txt": _canal,
    f"{_CANAL}table/schemaevolution/expected_state.json": State("canal-json"),
    f"{_CANAL}table/schemaevolutionmissingddl/canal-data-1.txt": _canal,
    f"{_CANAL}table/schemaevolutionmissingddl/canal-data-2.txt": _canal,
    f"{_CANAL}table/schemaevolutionmissingddl/canal-data-3.txt": _canal,
    f"{_CANAL}table/schemaevolutionmissingddl/canal-data-4.txt": _canal,
    f"{_CANAL}table/schemaevolutionmissingddl/canal-data-5.txt": _canal,
    f"{_CANAL}table/schemaevolutionmissingddl/expected_state.json": State("canal-json"),
    f"{_CANAL}table/startupmode/canal-data-1.txt": _canal,
    f"{_CANAL}table/startupmode/canal-data-2.txt": _canal,
    f"{_CANAL}table/startupmode/expected_state.json": State("canal-json"),
    f"{_CANAL}table/watermark/canal-data-1.txt": _canal,
    f"{_DEBEZIUM}table/nullvalue/debezium-data-1.txt": _no_place,
    f"{_DEBEZIUM}table/nullvalue/debezium-data-2.txt": _no_place,
    f"{_DEBEZIUM}table/schema/include/debezium-data-1.txt": _debezium,
    f"{_DEBEZIUM}table/schema/include/expected_state.json": State("debezium-json"),
    f"{_DEBEZIUM}table/schema/schemaevolution/debezium-data-1.txt": _no_place,
    f"{_DEBEZIUM}table/schema/schemaevolution/debezium-data-2.txt": _no_place,
    f"{_DEBEZIUM}table/schema/schemaevolution/debezium-data-3.txt": _no_place,
    f"{_DEBEZIUM}table/schema/schemaevolution/debezium-data-4.txt": _no_place,
    f"{_DEBEZIUM}table/schema/schemaevolution/debezium-data-5.txt": _no_place,
    f"{_DEBEZIUM}table/schema/schemaevolution/debezium-data-with-delete.txt": _no_place,
    f"{_DEBEZIUM}table/schema/schemaevolution/expected_state.json": State("debezium-json"),
    f"{_DEBEZIUM}table/schemaevolution/debezium-data-1.txt": _no_place,
    f"{_DEBEZIUM}table/schemaevolution/debezium-data-2.txt": _no_place,
    f"{_DEBEZIUM}table/schemaevolution/debezium-data-3.txt": _no_place,
    f"{_DEBEZIUM}table/schemaevolution/expected_state.json": State("debezium-json"),
    f"{_DEBEZIUM}table/startupmode/debezium-data-1.txt": _no_place,
    f"{_DEBEZIUM}table/startupmode/debezium-data-2.txt": _no_place,
    f"{_DEBEZIUM}table/startupmode/expected_state.json": State("debezium-json"),
    f"{_DEBEZIUM}table/watermark/debezium-data-1.txt": _no_place,
    f"{_MAXWELL}database/include/topic0/maxwell-data-1.txt": _maxwell,
    f"{_MAXWELL}table/schemaevolution/expected_state.json": _maxwell,
    f"{_MAXWELL}table/schemaevolution/maxwell-data-1.txt": _maxwell,
    f"{_MAXWELL}table/schemaevolution/maxwell-data-2.txt": _maxwell,
    f"{_MAXWELL}table/schemaevolution/maxwell-data-3.txt": _maxwell,
    f"{_MAXWELL}table/schemaevolution/maxwell-data-4.txt": _maxwell,
    f"{_MAXWELL}table/startupmode/expected_state.json": _maxwell,
    f"{_MAXWELL}table/startupmode/maxwell-data-1.txt": _maxwell,
    f"{_MAXWELL}table/startupmode/maxwell-data-2.txt": _maxwell,
    f"{_MAXWELL}table/watermark/maxwell-data-1.txt": _maxwell,
    f"{_OGG}database/include/topic0/ogg-data-1.txt": _ogg,
    f"{_OGG}database/prefixsuffix/expected_state.json": _ogg,
    f"{_OGG}database/prefixsuffix/topic0/ogg-data-1.txt": _ogg,
    f"{_OGG}database/prefixsuffix/topic0/ogg-data-2.txt": _ogg,
    f"{_OGG}database/prefixsuffix/topic1/ogg-data-1.txt": _ogg,
    f"{_OGG}database/prefixsuffix/topic1/ogg-data-2.txt": _ogg,
    f"{_OGG}table/event/event-delete.txt": _ogg,
    f"{_OGG}table/event/event-insert.txt": _ogg,
    f"{_OGG}table/event/event-update.txt": _ogg,
    f"{_OGG}table/event/expected_state.json": _ogg,
    f"{_PAIMON}mysql/debezium-event-change.json": _debezium,
    f"{_SEATUNNEL}maxwell-data-filter-table.txt": _maxwell,
    "tencent-dts/eventbridge-update-event.json": Refused(
        "dts-protobuf",
        "record.columns_differ",
        "the row carries one value for two columns; a value may not be taken for another column's",
    ),
    "ticdc-docs/ticdc/ticdc-canal-json.md.jsonl": _canal,
    "ticdc-docs/ticdc/ticdc-open-protocol.md.jsonl": OutOfScope("TiCDC's open protocol is not among the formats"),
}
