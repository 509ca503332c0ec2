# SPDX-License-Identifier: Apache-2.0
"""Convert images of many rows to typed columns, each row under the schema and the description that it came with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.clock_versions import version_of_repeat, version_of_row, versions_in_doubt
from airflow_provider_cdc.core.apply.insert_defaults import InsertDefaults
from airflow_provider_cdc.core.apply.merge_plan import RowFailure
from airflow_provider_cdc.core.apply.ordered_changes import RESTORED, AnyImages, Changes, Picked
from airflow_provider_cdc.core.apply.row_descriptions import RowDescriptions
from airflow_provider_cdc.core.apply.row_images import LEFT_OUT, SchemaMissing, columns_of_no_row
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.shaped_rows import columns_of_changes
from airflow_provider_cdc.core.apply.typed_rows import TypedRows, together
from airflow_provider_cdc.core.arrays import BoolArray, IntArray, indexes_by_mark
from airflow_provider_cdc.core.formats.contract import Description, Format
from airflow_provider_cdc.core.model.schema import Column, TableSchema
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.image_structs import member_mark
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

RULE_VALUE = "rule_value"  # a rule of the pipeline cannot make a column of the row
ABSENT = "column_absent"  # an image lacks a column of its table, and nothing says that it is unchanged


@dataclass(slots=True)
class RowTyper:
    """Type images of one table.

    :param changes: all rows of the stretch; images are chosen from it by row index.
    :param versions: schema version index of each row.
    :ivar foreign: which rows are of an earlier table of the same name, sent again: known once they are checked.
    """

    changes: Changes
    versions: np.ndarray
    timeline: TableTimeline
    wire: Format
    options: TypeOptions
    mapper: Mapper
    failures: list[RowFailure] = field(default_factory=list)
    lossy: Counter[str] = field(default_factory=Counter)
    foreign: np.ndarray = field(init=False)
    _descriptions: RowDescriptions = field(init=False)
    _texts: tuple[list[str | None], IntArray] | None = None
    _defaults: InsertDefaults | None = None

    def __post_init__(self) -> None:
        self.foreign = np.zeros(len(self.versions), dtype=bool)
        self._descriptions = RowDescriptions(self.timeline, self.wire)

    def check(self) -> None:
        """Compare what rows say of their columns with the timeline.

        Where a tool writes no positions, rows and the DDL on another partition are ordered only as well as its clock
        does it. A row that does not fit its schema version then belongs to the nearest version that it fits. A row that
        fits none is not of this table if it came before the table had its name, or if an earlier batch left it out. A
        row that came before and states an earlier key was sent again behind the drop of the key.

        :raises SchemaMissing: they differ; names the first position.
        :raises DataError: rows and a schema change are of one instant, and it matters which came first.
        """
        if self.wire.order == "clock":
            self._settle_versions()
        for version, text, row_indexes in self._spans(np.arange(len(self.versions))):
            if text is None:
                continue
            said = self._descriptions.of(text, version)
            # a truncate has no images
            if said.names and self._has_earlier_key(said, version):
                self.foreign[row_indexes] |= self.flags("doubtful")[row_indexes]
            if said.names and not self._fits(said, version):
                nearest = self._nearest(version, said) if self.wire.order == "clock" else None
                if nearest is not None:
                    self.versions[row_indexes] = nearest
                    continue
                sent_before = self.flags("older")[row_indexes] | self.flags("doubtful")[row_indexes]
                self.foreign[row_indexes[sent_before]] = True
                if sent_before.all():
                    continue
                row_index = int(row_indexes[~sent_before][0])
                raise self._schema_missing(version, row_index)

    def _schema_missing(self, version: int, row_index: int) -> SchemaMissing:
        """Return the error of a row with other columns than its schema version has."""
        text = "a row has other columns than the schema known for its position"
        hint = "it is applied as soon as the schema change arrives; check that source.schema_topic is read"
        known = [column.name for column in self.timeline.versions[version].schema.columns_in_rows]
        of_version = [
            self._names(said, known) for said in self._descriptions_of(np.flatnonzero(self.versions == version))
        ]
        everywhere = {name for said in self._descriptions_of(np.arange(len(self.versions))) for name in said.names}
        if lacking := [name for name in columns_of_no_row(known, of_version) if name not in everywhere]:
            text += f": no row has the columns {', '.join(lacking)}, or a schema change is still missing"
            hint = f"{LEFT_OUT}; if the source dropped them, {hint}"
        else:
            text += ": a schema change is still missing"
        where = {"table": str(self.timeline.last_name), **self._record_of(row_index)}
        return SchemaMissing("apply.schema_missing", text, where=where, hint=hint + self._descriptions.hint(version))

    def _descriptions_of(self, row_indexes: IntArray) -> list[Description]:
        """Return what different rows say of themselves."""
        spans = self._spans(row_indexes)
        return [self._descriptions.of(text, version) for version, text, _ in spans if text is not None]

    def have_key(self, row_indexes: IntArray, key: Collection[str]) -> BoolArray:
        """Return which rows have a record key of these columns."""
        flags: BoolArray = np.zeros(len(self.versions), dtype=bool)
        for version, text, members in self._spans(row_indexes):
            flags[members] = text is not None and {*(self._descriptions.of(text, version).key or ())} == {*key}
        return flags[row_indexes]

    def flags(self, name: str) -> np.ndarray:
        """Return a column of flags of all rows; where it lacks, none is set."""
        rows = self.changes.rows
        flags: np.ndarray = np.zeros(rows.num_rows, dtype=bool)
        if name in rows.column_names:
            flags = rows.column(name).to_numpy(zero_copy_only=False)
        return flags

    def _settle_versions(self) -> None:
        """Give rows that the clock cannot order with a schema change the schema version that they show to be of.

        So it does with rows that may have been sent again from before one.
        """
        first, last = versions_in_doubt(self.changes.rows.column("position"), self.timeline, self.versions)
        for version, text, row_indexes in self._spans(np.flatnonzero(first < last)):
            said = None if text is None else self._descriptions.of(text, version)
            if said is None or not said.names:
                continue
            for low, high in sorted(set(zip(first[row_indexes].tolist(), last[row_indexes].tolist(), strict=True))):
                fitting = [version for version in range(low, high + 1) if self._fits(said, version)]
                if fitting:
                    undecided = row_indexes[(first[row_indexes] == low) & (last[row_indexes] == high)]
                    self.versions[undecided] = version_of_row(
                        self.timeline, fitting, partial(self._stated_structure, said)
                    )
        for version, text, row_indexes in self._spans(np.flatnonzero(self.flags("doubtful"))):
            said = None if text is None else self._descriptions.of(text, version)
            if said is None or not said.names or self._has_earlier_key(said, version):
                continue
            fitting = [each for each in range(version + 1) if self._fits(said, each)]
            if fitting[-1:] == [version]:
                stated = self._stated_structure(said)
                self.versions[row_indexes] = version_of_repeat(self.timeline, fitting, stated, said.key)

    def _stated_structure(self, said: Description) -> TableSchema | None:
        """Return the structure that rows state; rows with all columns and types that name no key have none."""
        return self.wire.infer(replace(said, key=()) if said.key is None and said.complete else said)

    def _fits(self, said: Description, version: int) -> bool:
        schema = self.timeline.versions[version].schema
        known = {column.name for column in schema.columns_in_rows}
        names = self._names(said, known)
        return names == known if said.complete else names <= known

    def _names(self, said: Description, known: Collection[str]) -> set[str]:
        """Return the columns that rows have, without those that the table is to be without.

        :param known: columns of the table.
        """
        if not self.timeline.left_out and not self.timeline.unwritten:
            return set(said.names)
        return {name for name in said.names if name in known or not self._descriptions.leaves_out(name)}

    def _has_earlier_key(self, said: Description, version: int) -> bool:
        """Return whether rows state a key that the table had earlier; with all columns and no names they state none."""
        stated = () if said.key is None and said.complete else said.key
        if stated is None or self.timeline.versions[version].schema.key:
            return False  # where a key is left, the states of keys decide
        keys = [{column.name for column in each.schema.key_columns} for each in self.timeline.versions[: version + 1]]
        return set(stated) in keys and set(stated) != keys[-1]

    def _nearest(self, version: int, said: Description) -> int | None:
        """Return the schema version nearest to one, of two the later, that has these columns."""
        fitting = [other for other in range(len(self.timeline.versions)) if self._fits(said, other)]
        return min(fitting, key=lambda other: (abs(other - version), -other), default=None)

    def image(self, name: str) -> AnyImages:
        """Return an image of all rows, with all columns also of updates that name only those that they changed.

        :param name: ``before``, ``after`` or ``key`` (:meth:`Changes.image`).
        """
        return self.changes.image(RESTORED if name == "before" and self.wire.updates_name_changes else name)

    def may_move_key(self, updates: IntArray, target: int) -> BoolArray:
        """Return which updates may have had another key before: those whose images before name a column of the key.

        :param updates: indexes of updates that have an image before.
        :param target: schema version that has the key.
        """
        if not self.wire.updates_name_changes:
            return np.ones(len(updates), dtype=bool)
        may: BoolArray = np.zeros(len(self.versions), dtype=bool)
        key_of, images = self.timeline.versions[target].schema, self.changes.images["before"]
        for version, text, members in self._spans(updates):
            columns = self._columns(version, key_of)
            description = None if text is None else self._descriptions.of(text, version)
            if len(columns) < len(key_of.key):  # rows do not name all of them
                may[members] = True
                continue
            marks = [member_mark(self._field(column, description).encoded.name) for column in columns]
            for portion in images.portions(members):
                texts = images.at(portion)
                for mark in marks:
                    may[portion] |= pc.match_substring(texts, mark).to_numpy(zero_copy_only=False)
        return may[updates]

    def typed(
        self, row_indexes: np.ndarray, image: str, target: int, *, key_only: bool = False, partial: bool = False
    ) -> TypedRows:
        """Type one image of chosen rows under their own schema versions and map them to version ``target``.

        :param row_indexes: indexes of the rows, ascending.
        :param image: ``before``, ``after`` or ``key`` (:meth:`image`).
        :param key_only: only the key's columns of the target's schema.
        :param partial: whether updates may lack columns; else a row whose image lacks one fails.
        """
        target_schema = self.timeline.versions[target].schema
        # descriptions may be many, one for each set of columns that changed together; few differ in how values stand
        alike: dict[tuple[int, tuple[Field, ...]], list[np.ndarray]] = {}
        for version, text, members in self._spans(row_indexes):
            columns = self._columns(version, target_schema if key_only else None)
            description = None if text is None else self._descriptions.of(text, version)
            alike.setdefault((version, tuple(self._field(c, description) for c in columns)), []).append(members)
        groups = [
            self._group(version, fields, portion, image, target_schema if key_only else None, target, partial)
            for (version, fields), members in alike.items()
            for portion in self.image(image).portions(np.sort(np.concatenate(members)))
        ]
        if not groups:
            return TypedRows(self.mapper.rows({}, 0, target, target, key_only=key_only).rows, row_indexes, {})
        return groups[0] if len(groups) == 1 else together(groups)

    def _group(
        self,
        version: int,
        fields: Sequence[Field],
        row_indexes: np.ndarray,
        image: str,
        key_of: TableSchema | None,
        target: int,
        partial: bool,
    ) -> TypedRows:
        columns = self._columns(version, key_of)
        row_indexes, images = self._images(row_indexes, image)
        result = type_images(images, fields)
        arrays = {column.id: values for column, values in zip(columns, result.columns, strict=True)}
        absent = {
            column.id: mask.to_numpy(zero_copy_only=False)
            for column, mask in zip(columns, result.absent, strict=True)
            if mask is not None
        }
        if absent and image != "before" and self.wire.inserts_lack_defaults is not False:
            self._inserts().give(row_indexes, self.timeline.versions[version].schema, arrays, absent)
        partial = partial and not self.mapper.reads_whole_rows
        bad = self._unfit(row_indexes, result) | self._lacking(row_indexes, columns, absent, partial)
        if bad:
            keep: Any = np.ones(len(row_indexes), dtype=bool)
            keep[sorted(bad)] = False
            mask = pa.array(keep)
            arrays, row_indexes = {i: values.filter(mask) for i, values in arrays.items()}, row_indexes[keep]
            absent = {i: lacks[keep] for i, lacks in absent.items()}
        if key_of is None:
            self._add_dropped(version, image, row_indexes, arrays, absent)
        changes = columns_of_changes(self.changes.rows, self.timeline, row_indexes)
        rows, refused, passes = self.mapper.rows(arrays, len(row_indexes), version, target, key_of is not None, changes)
        names = {one.id: one.name for one in self.mapper.columns(target) if one.id in absent and absent[one.id].any()}
        typed = TypedRows(rows, row_indexes, {name: absent[i] for i, name in names.items()}, passes)
        for name, out in refused.items():
            for row_index in row_indexes[out]:
                self.fail(int(row_index), name, RULE_VALUE)
        return typed.without(refused)

    def _add_dropped(
        self,
        version: int,
        image: str,
        row_indexes: np.ndarray,
        arrays: dict[int, pa.Array],
        absent: dict[int, np.ndarray],
    ) -> None:
        """Add the columns that only the target has: new rows have NULL, an update leaves the value as it is.

        Those that stay out of the change log are constants in the target.
        """
        for column in self.timeline.versions[version].schema.columns:
            if column.dropped:
                arrays[column.id] = pa.nulls(len(row_indexes), arrow_type(column.type, self.options))
                if image == "after" and not self.timeline.leaves_out(column.name):
                    absent[column.id] = self.changes.are("update", rows=row_indexes)

    def _columns(self, version: int, key_of: TableSchema | None) -> list[Column]:
        columns = self.timeline.versions[version].schema.columns_in_rows
        return [column for column in columns if key_of is None or column.id in key_of.key]

    def _images(self, row_indexes: np.ndarray, image: str) -> tuple[np.ndarray, Picked]:
        """Return images of rows; the rows that have none fail."""
        images = self.image(image)
        there = images.there[row_indexes]
        for row_index in row_indexes[~there]:
            self.fail(int(row_index), "", "image_missing")
        present: np.ndarray = row_indexes[there]
        return present, Picked(images, present)

    def _unfit(self, row_indexes: np.ndarray, result: Typed) -> set[int]:
        """Note what did not convert; returns the rows it is in."""
        self.lossy.update(result.lossy)
        for failure in result.failures:
            self.fail(int(row_indexes[failure.row]), failure.column, failure.reason)
        return {failure.row for failure in result.failures}

    def _inserts(self) -> InsertDefaults:
        """Return what gives inserted rows the defaults of columns that they lack."""
        if self._defaults is None:
            self._defaults = InsertDefaults(
                self.changes, self.versions, self.timeline, self.wire, self._mark, self._record_of
            )
        return self._defaults

    def _mark(self, column: Column) -> str:
        return member_mark(self._field(column, None).encoded.name)

    def _lacking(
        self, row_indexes: np.ndarray, columns: Sequence[Column], absent: Mapping[int, np.ndarray], partial: bool
    ) -> set[int]:
        """Note which rows lack a column that they must have; returns them. NULL would be another value."""
        lacking: dict[int, str] = {}
        if absent:
            bound = ~self.changes.are("update", rows=row_indexes) if partial else np.ones(len(row_indexes), bool)
            for column in columns:
                if column.id in absent:
                    for row in np.flatnonzero(absent[column.id] & bound).tolist():
                        lacking.setdefault(row, column.name)
        for row, name in lacking.items():
            self.fail(int(row_indexes[row]), name, ABSENT)
        return set(lacking)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Count nothing of what is typed meanwhile: it is compared, and typed once more where it is written."""
        failures, lossy = len(self.failures), Counter(self.lossy)
        yield
        del self.failures[failures:]
        self.lossy.clear()
        self.lossy.update(lossy)

    def fail(self, row_index: int, column: str, reason: str) -> None:
        """Note that a row is left out."""
        self.failures.append(RowFailure(**self._record_of(row_index), column=column, reason=reason))

    def _field(self, column: Column, description: Description | None) -> Field:
        encoded = self.wire.encoding_of(column.name, column.type, description)
        return Field(encoded, column.type, arrow_type(column.type, self.options))

    def _spans(self, row_indexes: np.ndarray) -> list[tuple[int, str | None, np.ndarray]]:
        """Group row indexes by (schema version, description)."""
        if not len(row_indexes):
            return []
        texts, codes = self._texts_and_codes()
        marks = self.versions[row_indexes] * len(texts) + codes[row_indexes]
        spans = []
        for members in indexes_by_mark(marks):
            version, code = divmod(int(marks[members[0]]), len(texts))
            spans.append((version, texts[code], row_indexes[members]))
        return spans

    def _texts_and_codes(self) -> tuple[list[str | None], IntArray]:
        """Return the descriptions of all rows, None among them, and the number of each row's one."""
        if self._texts is None:
            column = self.changes.rows.column("columns").unify_dictionaries()
            texts = [*(column.chunk(0).dictionary.to_pylist() if column.num_chunks else []), None]
            codes = [pc.fill_null(chunk.indices, len(texts) - 1).to_numpy() for chunk in column.chunks]
            self._texts = texts, np.concatenate([np.empty(0, np.int64), *codes], dtype=np.int64)
        return self._texts

    def _record_of(self, row_index: int) -> dict[str, Any]:
        return {name: self.changes.rows.column(name)[row_index].as_py() for name in ("topic", "partition", "offset")}
