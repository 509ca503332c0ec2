"""Images of many rows to typed columns, each row under the schema and the description it came with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.delta import RowFailure
from airflow_provider_cdc.core.apply.mapping import Mapper
from airflow_provider_cdc.core.ddl.timeline import TableTimeline
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Description, Format
from airflow_provider_cdc.core.model.schema import Column, TableSchema
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type


class SchemaMissing(DataError):
    """A row's own description does not fit the schema known for its position: a DDL is still missing."""


@dataclass(slots=True)
class RowTyper:
    """Types images of one table.

    :param changes: all rows of the stretch, sorted; images are chosen from it by place.
    :param epochs: epoch index of each row.
    """

    changes: pa.Table
    epochs: np.ndarray
    timeline: TableTimeline
    wire: Format
    options: TypeOptions
    mapper: Mapper
    failures: list[RowFailure] = field(default_factory=list)
    lossy: dict[str, int] = field(default_factory=dict)
    _descriptions: dict[str, Description] = field(default_factory=dict)

    def check(self) -> None:
        """Compare what rows say of their columns with the timeline.

        Where a tool writes no positions, rows and the DDL on another partition are ordered only as well as its clock
        does it: a row that does not fit its epoch then belongs to the nearest one that it fits.

        :raises SchemaMissing: they differ; names the first position.
        """
        for epoch, text, places in self._spans(np.arange(len(self.epochs))):
            if text is None:
                continue
            said = frozenset(self._description(text).names)
            # a truncate has no images
            if said and said != self._names(epoch):
                nearest = self._nearest(epoch, said) if self.wire.order == "second" else None
                if nearest is not None:
                    self.epochs[places] = nearest
                    continue
                place = int(places[0])
                raise SchemaMissing(
                    "apply.schema_missing",
                    "a row has other columns than the schema known for its position: a schema change is still missing",
                    where={"table": str(self.timeline.last_name), **self._place(place)},
                    hint="it is applied as soon as the schema change arrives; check that source.schema_topic is read",
                )

    def _names(self, epoch: int) -> frozenset[str]:
        return frozenset(column.name for column in self.timeline.epochs[epoch].schema.columns)

    def _nearest(self, epoch: int, said: frozenset[str]) -> int | None:
        """Return the epoch nearest to one, of two the later, that has exactly these columns."""
        fitting = [other for other in range(len(self.timeline.epochs)) if self._names(other) == said]
        return min(fitting, key=lambda other: (abs(other - epoch), -other), default=None)

    def typed(
        self, places: np.ndarray, image: str, target: int, *, key_only: bool = False
    ) -> tuple[pa.Table, np.ndarray]:
        """Type one image of chosen rows under their own epochs and map them to epoch ``target``.

        :param places: rows by place, ascending.
        :param image: ``before`` or ``after``.
        :param key_only: only the key's columns of the target's schema.
        :return: the typed rows and the places they came from: both without the rows that failed.
        """
        wanted = self.timeline.epochs[target].schema
        tables, kept = [], []
        for epoch, text, chosen in self._spans(places):
            table, good = self._group(epoch, text, chosen, image, wanted if key_only else None, target)
            tables.append(table)
            kept.append(good)
        if not tables:
            empty = self.mapper.rows({}, 0, target, target)
            return (empty.select([c.name for c in wanted.key_columns]) if key_only else empty), places
        order = np.concatenate(kept)
        together = pa.concat_tables(tables)
        if len(tables) > 1:
            ranks = np.argsort(order, kind="stable")
            together, order = together.take(pa.array(ranks)), order[ranks]
        return together, order

    def _group(
        self, epoch: int, text: str | None, places: np.ndarray, image: str, key_of: TableSchema | None, target: int
    ) -> tuple[pa.Table, np.ndarray]:
        description = None if text is None else self._description(text)
        schema = self.timeline.epochs[epoch].schema
        columns = [c for c in schema.columns if key_of is None or c.id in key_of.key]
        images = self.changes.column(image).take(pa.array(places)).combine_chunks()
        if isinstance(images, pa.ChunkedArray):
            images = pa.concat_arrays(images.chunks) if images.num_chunks else pa.array([], pa.string())
        places, images = self._without_missing(places, images)
        fields = [self._field(column, description) for column in columns]
        result = type_images(images, fields)
        arrays = {column.id: values for column, values in zip(columns, result.columns, strict=True)}
        bad = sorted({failure.row for failure in result.failures})
        for failure in result.failures:
            self.failures.append(
                RowFailure(**self._place(int(places[failure.row])), column=failure.column, reason=failure.reason)
            )
        for reason, count in result.lossy.items():
            self.lossy[reason] = self.lossy.get(reason, 0) + count
        if bad:
            keep: Any = np.ones(len(places), dtype=bool)
            keep[bad] = False
            mask = pa.array(keep)
            arrays, places = {i: values.filter(mask) for i, values in arrays.items()}, places[keep]
        table = self.mapper.rows(arrays, len(places), epoch, target)
        if key_of is not None:
            table = table.select([c.name for c in key_of.key_columns])
        return table, places

    def _without_missing(self, places: np.ndarray, images: pa.Array) -> tuple[np.ndarray, pa.Array]:
        """Return the rows that carry the image; the others fail."""
        if not images.null_count:
            return places, images
        there = images.is_valid()
        mask = there.to_numpy(zero_copy_only=False)
        for place in places[~mask]:
            self.failures.append(RowFailure(**self._place(int(place)), column="", reason="image_missing"))
        kept: np.ndarray = places[mask]
        return kept, images.filter(there)

    def _field(self, column: Column, description: Description | None) -> Field:
        encoded = self.wire.encoding_of(column.name, column.type, description)
        return Field(encoded, column.type, arrow_type(column.type, self.options))

    def _spans(self, places: np.ndarray) -> list[tuple[int, str | None, np.ndarray]]:
        """Group places by (epoch, description)."""
        if not len(places):
            return []
        texts = self.changes.column("columns").unify_dictionaries()
        texts = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.chunk(0)
        codes = (
            pc.fill_null(texts.indices, len(texts.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)[places]
        )
        marks = self.epochs[places] * (len(texts.dictionary) + 1) + codes
        spans = []
        for mark in np.unique(marks):
            epoch, code = divmod(int(mark), len(texts.dictionary) + 1)
            text = None if code == len(texts.dictionary) else texts.dictionary[code].as_py()
            spans.append((epoch, text, places[marks == mark]))
        return spans

    def _description(self, text: str) -> Description:
        if text not in self._descriptions:
            self._descriptions[text] = self.wire.describe(text)
        return self._descriptions[text]

    def _place(self, place: int) -> dict[str, Any]:
        return {name: self.changes.column(name)[place].as_py() for name in ("topic", "partition", "offset")}
