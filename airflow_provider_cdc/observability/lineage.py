# SPDX-License-Identifier: Apache-2.0
"""Describe a batch as OpenLineage does: topics in, tables out, columns by the schema's history.

Everything but :func:`as_operator_lineage` is plain data and needs no OpenLineage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_cdc.batch.result import BatchResult, newest_by_name, table_states
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.expressions.expression import parse
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.laid_columns import LaidColumn, LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger.records import time_text

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.generated.base import OutputDataset
    from openlineage.client.generated.column_lineage_dataset import Fields

    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.model.check_result import CheckResult
    from airflow_provider_cdc.ledger import Batch, Ledger

Name = tuple[str, str]
"""Namespace and name of a dataset."""


@dataclass(frozen=True)
class TableOutput:
    """A table that a batch changed.

    :param name: of its location, by OpenLineage's naming of stores.
    :param alias: of the pipeline's table: ``cdc://PIPELINE`` and ``DATABASE.TABLE``.
    :param columns: name and type of each column; None for a type that is neither the source's nor text.
    :param sources: fields of topics that each column comes from; empty where the topic of the table is not known.
    :param made: how the values of each column come from these: ``IDENTITY``, ``MASKED``, or otherwise (None).
    :param lifecycle: change of the table as a whole, empty for none.
    """

    name: Name
    alias: Name
    version: int | None
    rows: int
    columns: list[tuple[str, str | None]]
    sources: dict[str, list[tuple[Name, str]]]
    lifecycle: str = ""
    made: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchLineage:
    """Datasets that a batch read and wrote.

    :param batch: the run facet ``cdc_batch``.
    """

    inputs: list[Name] = field(default_factory=list)
    outputs: list[TableOutput] = field(default_factory=list)
    batch: dict[str, Any] = field(default_factory=dict)


def expected_lineage(pipeline: CdcPipeline, namespace: str) -> BatchLineage:
    """Return what a batch is going to read; topics that a pattern names are known only afterwards."""
    source = pipeline.source
    named = [] if isinstance(source.topics, str) else source.topics
    topics = {topic for topic in (*named, source.schema_topic) if topic is not None} - {source.heartbeat_topic}
    return BatchLineage([(namespace, topic) for topic in sorted(topics)], batch={"pipeline": pipeline.name})


def batch_lineage(
    pipeline: CdcPipeline, ledger: Ledger, namespace: str, result: BatchResult, batch: Batch | None
) -> BatchLineage:
    """Return the lineage of a batch; one that was done before, or failed, has no outputs.

    :param namespace: of the topics, as OpenLineage names it: ``kafka://host:port``.
    :param batch: the ledger's batch; None where the request had none.
    """
    facet = {
        "pipeline": pipeline.name,
        "seq": result.seq,
        "status": str(result.status),
        "until": None if batch is None else time_text(batch.until),
        "records": result.records,
        "cut": result.cut,
        "repeated": bool(result.repeated),
        "parked": [table.name for table in result.parked or ()],
        "error": None if result.error is None else result.error.code,
    }
    inputs = [] if batch is None else _topics(pipeline, batch, namespace)
    if batch is None or result.repeated or result.error is not None:
        return BatchLineage(inputs, batch=facet)
    states = newest_by_name(table_states(ledger, pipeline.name).values())
    changed = [line for line in result.tables if line.name in states and (line.action or _dropped(states[line.name]))]
    outputs = [
        _output(pipeline, ledger, batch, states[line.name], line.upserts, line.action, inputs) for line in changed
    ]
    return BatchLineage(inputs, outputs, facet)


def _topics(pipeline: CdcPipeline, batch: Batch, namespace: str) -> list[Name]:
    """Return the topics of which the batch read records."""
    read = [
        topic
        for topic, partitions in batch.end.items()
        if topic != pipeline.source.heartbeat_topic
        and any(end > batch.start.get(topic, {}).get(partition, end) for partition, end in partitions.items())
    ]
    return [(namespace, topic) for topic in sorted(read)]


def _output(
    pipeline: CdcPipeline,
    ledger: Ledger,
    batch: Batch,
    state: TableState,
    rows: int,
    action: str,
    inputs: Sequence[Name],
) -> TableOutput:
    schema = TableSchema.from_document(state.schema) if state.schema else TableSchema(())
    before = _schema_before(ledger, pipeline.name, state.table_id, batch.seq)
    topics = _topics_of(state, [name for name in inputs if name[1] != pipeline.source.schema_topic])
    columns = LaidColumns.from_document(state.laid).of(schema)
    sources = {
        column.name: [(topic, name) for topic in topics for name in _read_by(column, before, schema)]
        for column in (columns if topics else ())
        if column.id >= 0 or column.expression
    }
    lifecycle = "DROP" if _dropped(state) else "CREATE" if state.version == 0 else ""
    return TableOutput(
        location_name(located(pipeline.sink.root, state.location)),
        (f"cdc://{pipeline.name}", f"{state.database}.{state.table}"),
        state.version,
        rows,
        [(column.name, _type(column, schema)) for column in columns],
        sources,
        lifecycle or ("OVERWRITE" if action == "overwrite" else ""),
        {one.name: "MASKED" if one.is_masked else None if one.mark else "IDENTITY" for one in columns},
    )


def _type(column: LaidColumn, schema: TableSchema) -> str | None:
    """Return the type of a column, None where neither the source nor its mask says it."""
    own = schema.column(column.id)
    if column.salt:
        return "string"
    return str(own.type) if own is not None and (column.is_masked or not column.mark) else None


def _read_by(column: LaidColumn, before: TableSchema | None, after: TableSchema) -> list[str]:
    """Return the names under which the batch's records may carry what a column's values are made of."""
    if not column.expression:
        return _names(column.id, before, after)
    names: dict[str, None] = {}
    for read in parse(column.expression).columns:
        columns = [schema.named(read) for schema in (after, before) if schema is not None]
        ids = [one.id for one in columns if one is not None][:1]
        names |= dict.fromkeys(_names(ids[0], before, after) if ids else [read])
    return list(names)


def _dropped(state: TableState) -> bool:
    return state.state == TableStatus.DROPPED


def _schema_before(ledger: Ledger, pipeline: str, table_id: str, seq: int) -> TableSchema | None:
    earlier = [document for number, document in ledger.table_versions(pipeline, table_id) if number < seq]
    document = (earlier[-1] or {}).get("schema") if earlier else None
    return TableSchema.from_document(document) if document else None


def _names(column_id: int, before: TableSchema | None, after: TableSchema) -> list[str]:
    """Return the names under which the batch's records may carry a column: those before and after a rename."""
    columns = [schema.column(column_id) for schema in (before, after) if schema is not None]
    return list(dict.fromkeys(column.name for column in columns if column is not None))


def _topics_of(state: TableState, topics: Sequence[Name]) -> list[Name]:
    """Return the topics that carry a table's rows, by their names; the only one; none where that is not known."""
    full = f"{state.database}.{state.table}"
    named = [name for name in topics if name[1] == full or name[1].endswith(f".{full}")]
    return named or (list(topics) if len(topics) == 1 else [])


def location_name(location: str) -> Name:
    """Return the dataset name of a location, by OpenLineage's naming of stores."""
    url = urlsplit(location)
    if url.scheme in ("", "file"):
        return "file", url.path if url.scheme else location
    scheme = "s3" if url.scheme == "s3a" else url.scheme
    return f"{scheme}://{url.netloc}", url.path.strip("/")


def as_operator_lineage(lineage: BatchLineage, *, columns: bool = True) -> OperatorLineage[Any, Any]:
    """Return a lineage in the classes of Airflow's OpenLineage provider, which has to be installed.

    :param columns: whether outputs have the columns of their tables.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.generated.base import InputDataset, RunFacet

    return OperatorLineage(
        inputs=[InputDataset(namespace, name) for namespace, name in lineage.inputs],
        outputs=[
            _dataset(output if columns else replace(output, columns=[], sources={})) for output in lineage.outputs
        ],
        run_facets={"cdc_batch": RunFacet().with_additional_properties(**lineage.batch)},
    )


def _dataset(output: TableOutput) -> OutputDataset:
    from openlineage.client.generated.base import OutputDataset
    from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet
    from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
    from openlineage.client.generated.lifecycle_state_change_dataset import (
        LifecycleStateChange,
        LifecycleStateChangeDatasetFacet,
    )
    from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
    from openlineage.client.generated.symlinks_dataset import Identifier, SymlinksDatasetFacet

    fields = [SchemaDatasetFacetFields(name=name, type=kind) for name, kind in output.columns]
    alias = Identifier(namespace=output.alias[0], name=output.alias[1], type="TABLE")
    facets: dict[str, Any] = {"symlinks": SymlinksDatasetFacet(identifiers=[alias])}
    if fields:
        facets["schema"] = SchemaDatasetFacet(fields=fields)
    if output.version is not None:
        facets["version"] = DatasetVersionDatasetFacet(datasetVersion=str(output.version))
    if output.sources:
        facets["columnLineage"] = ColumnLineageDatasetFacet(fields=_column_fields(output.sources, output.made))
    if output.lifecycle:
        change = LifecycleStateChange(output.lifecycle)
        facets["lifecycleStateChange"] = LifecycleStateChangeDatasetFacet(lifecycleStateChange=change)
    statistics = OutputStatisticsOutputDatasetFacet(rowCount=output.rows)
    return OutputDataset(*output.name, facets=facets, outputFacets={"outputStatistics": statistics})


def _column_fields(
    sources: Mapping[str, Sequence[tuple[Name, str]]], made: Mapping[str, str | None]
) -> dict[str, Fields]:
    from openlineage.client.generated.column_lineage_dataset import Fields, InputField

    return {
        column: Fields(
            inputFields=[InputField(namespace=name[0], name=name[1], field=source) for name, source in fields],
            transformationType=made[column],
        )
        for column, fields in sources.items()
    }


def checks_lineage(
    states: Sequence[TableState], results: Sequence[CheckResult], root: str
) -> OperatorLineage[Any, Any]:
    """Return the tables that were checked, each with what was demanded of it, in the classes of the provider.

    :param root: of the lake.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.generated.base import InputDataset

    return OperatorLineage(
        inputs=[
            InputDataset(
                *location_name(located(root, state.location)),
                inputFacets={"dataQualityAssertions": _assertions(f"{state.database}.{state.table}", results)},
            )
            for state in states
        ]
    )


def _assertions(table: str, results: Sequence[CheckResult]) -> Any:
    """Return the facet of a table; a check that does not pass and names no table is about all of them."""
    from openlineage.client.generated.data_quality_assertions_dataset import (
        Assertion,
        DataQualityAssertionsDatasetFacet,
    )

    passed = {result.check: result.passed or bool(result.tables and table not in result.tables) for result in results}
    return DataQualityAssertionsDatasetFacet([Assertion(check, success) for check, success in passed.items()])
