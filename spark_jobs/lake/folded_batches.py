# SPDX-License-Identifier: Apache-2.0
"""The oldest batches of a pipeline as one document: their rows were removed, and each table has applied them.

They are in the folder of batch 0 of the change log. A snapshot (``folded-<through>.json``) holds all of them;
``folded.json`` names the snapshot that counts, so one write switches from the documents of the batches to the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from airflow_provider_cdc.core.documents import Result, TableLine, TableState
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.plain_data import Document
from spark_jobs.lake.layout import FOLDED, batch_document, expired_file, folded_rows_file, log_folder
from spark_jobs.lake.manifest import Manifest, RowGroup
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stored_result import StoredResult

_SHOWN = 100  # quarantined records, and statements, that the result of all batches names: the newest


@dataclass(slots=True)
class FoldedBatches(Document):
    """The batches of a pipeline from the first one up to a number.

    :param through: number of the newest of them.
    :param count: how many they are.
    :param claim: claim of the newest one, with the start of the first; None where an earlier release wrote them.
    :param result: numbers are sums, states are in ``states``, schema changes in ``schema_changes``; all else is that of
        the newest batch.
    :param states: batch and state, ascending: the newest state of each table, and the newest that its own batch made,
        to which the table may go back.
    :param schema_changes: batch and document of each.
    :param groups: for each name of a table one row group that stands for all its rows, with the newest batch that has
        any.
    """

    through: int
    count: int
    claim: dict[str, Any] | None
    result: StoredResult
    states: list[tuple[int, TableState]] = field(default_factory=list)
    schema_changes: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    groups: list[tuple[int, RowGroup]] = field(default_factory=list)

    def manifest(self, seq: int) -> Manifest:
        """Return what stands for the tables whose newest rows a batch landed: row groups that can no longer be read."""
        return Manifest([group for newest, group in self.groups if newest == seq], seq=seq)

    def newest_states(self) -> dict[str, tuple[int, TableState]]:
        """Return batch and newest state of each table, by table id."""
        return {state.table_id: (seq, state) for seq, state in self.states}

    def with_next(
        self, seq: int, claim: dict[str, Any] | None, manifest: Manifest, stored: StoredResult, pipeline: str
    ) -> FoldedBatches:
        """Return the batches with the next one."""
        newest, made = self.newest_states(), self._states_to_go_back_to()
        newest |= {state.table_id: (seq, state) for state in stored.result.states}
        made |= {s.table_id: (seq, s) for s in stored.result.states if _is_made_by(seq, s)}
        states = {(n, state.table_id): (n, state) for n, state in (*made.values(), *newest.values())}
        changes = [*self.schema_changes, *((seq, change) for change in stored.result.new_schema_changes)]
        return FoldedBatches(
            seq,
            self.count + 1,
            _joined_claim(self.claim, claim),
            replace(stored, result=_joined_result(self.result.result, stored.result), unfit=[]),
            [states[at] for at in sorted(states)],
            changes,
            _joined_groups([*self.groups, *((seq, group) for group in manifest.groups)], pipeline),
        )

    def _states_to_go_back_to(self) -> dict[str, tuple[int, TableState]]:
        return {state.table_id: (seq, state) for seq, state in self.states if _is_made_by(seq, state)}

    def lake_batch(self) -> dict[str, Any]:
        """Return what a ledger has of them as one batch, as plain JSON data: it may have lost the batches."""
        states = self.newest_states()
        result = replace(
            self.result.result,
            states=[state for _, state in states.values()],
            new_schema_changes=[change for _, change in self.schema_changes],
        )
        return {
            "seq": self.through,
            "claim": self.claim,
            "result": result.document(),
            "folded": {
                "batches": self.count,
                "states": {table_id: seq for table_id, (seq, _) in states.items()},
                "schema_changes": [seq for seq, _ in self.schema_changes],
            },
        }


def no_batches(pipeline: str) -> FoldedBatches:
    """Return the batches before the first."""
    return FoldedBatches(0, 0, None, StoredResult(Result(pipeline, 0, ResultStatus.DONE)))


@dataclass(slots=True)
class FoldedRange(Document):
    """Numbers of the batches that are only part of the snapshot.

    :param through: the newest, 0 without any.
    :param batches: those that stand for tables: see ``FoldedBatches.manifest``.
    """

    through: int = 0
    batches: list[int] = field(default_factory=list)

    def is_expired(self, storage: Storage, pipeline: str, seq: int) -> bool:
        """Return whether the rows of a batch were removed, or are being removed."""
        return seq <= self.through or storage.read_unfinished(expired_file(pipeline, seq)) is not None


def folded_range(storage: Storage, pipeline: str) -> FoldedRange:
    """Return which batches are only part of the snapshot."""
    document = storage.read_json(batch_document(pipeline, FOLDED, "folded"))
    return FoldedRange() if document is None else FoldedRange(**document)


def folded_through(storage: Storage, pipeline: str) -> int:
    """Return the number of the newest batch that is only part of the snapshot, 0 without any."""
    return folded_range(storage, pipeline).through


def read_folded(storage: Storage, pipeline: str, through: int) -> FoldedBatches:
    """Return the batches up to a number that :func:`folded_range` returned.

    :raises BusyError: ``log.folded``, maintenance replaced the snapshot since.
    """
    document = storage.read_json(_snapshot(pipeline, through))
    if document is None:
        raise folded_meanwhile(storage, pipeline)
    return FoldedBatches.from_document(document)


def write_folded(storage: Storage, pipeline: str, folded: FoldedBatches) -> None:
    """Let a snapshot count in place of the documents of its batches."""
    storage.write_json(batch_document(pipeline, FOLDED, "expired"), {"all": True})
    storage.write_json(_snapshot(pipeline, folded.through), folded.document())
    numbers = FoldedRange(folded.through, sorted({folded.through, *(seq for seq, _ in folded.groups)}))
    storage.write_json(batch_document(pipeline, FOLDED, "folded"), numbers.document())


def remove_older_snapshots(storage: Storage, pipeline: str, through: int) -> None:
    """Remove the snapshots before the one that counts."""
    for name, _ in storage.files(log_folder(pipeline, FOLDED), ".json"):
        if f"{log_folder(pipeline, FOLDED)}/folded-" <= name < _snapshot(pipeline, through):
            storage.delete_file(name)


def folded_meanwhile(storage: Storage, pipeline: str) -> BusyError:
    """Return the error of a reader whose documents became part of a newer snapshot while it read."""
    return BusyError(
        "log.folded",
        "maintenance put old batches of the change log together while they were read",
        where={"root": storage.root, "pipeline": pipeline},
        hint="run again",
    )


def _snapshot(pipeline: str, through: int) -> str:
    return batch_document(pipeline, FOLDED, f"folded-{through:08d}")


def _is_made_by(seq: int, state: TableState) -> bool:
    """Return whether a batch committed rows of a table, so that the table's version is that of the batch."""
    return state.version is not None and state.applied_seq == seq


def _joined_claim(first: dict[str, Any] | None, then: dict[str, Any] | None) -> dict[str, Any] | None:
    if first is None or then is None:
        return then
    times = [claim["until"] for claim in (first, then) if claim["until"]]
    start = {topic: {**offsets, **first["start"].get(topic, {})} for topic, offsets in then["start"].items()}
    start = {**first["start"], **start}
    return {**then, "start": start, "until": max(times, key=datetime.fromisoformat, default=None), "cut_at": None}


def _joined_result(first: Result, then: Result) -> Result:
    lines: dict[tuple[str, str], TableLine] = {(line.database, line.table): line for line in first.tables}
    for line in then.tables:
        before = lines.get((line.database, line.table))
        if before is not None:
            sums = before.upserts + line.upserts, before.deletes + line.deletes
            line = replace(line, action=line.action or before.action, upserts=sums[0], deletes=sums[1])
        lines[line.database, line.table] = line
    return replace(
        then,
        records=first.records + then.records,
        changes=_sums(first.changes, then.changes),
        schema_changes=first.schema_changes + then.schema_changes,
        quarantined=first.quarantined + then.quarantined,
        quarantine=[*first.quarantine, *then.quarantine][-_SHOWN:],
        lossy=_sums(first.lossy, then.lossy),
        states=[],
        new_schema_changes=[],
        statements=[*first.statements, *then.statements][-_SHOWN:],
        tables=list(lines.values()),
        new_generations=[*first.new_generations, *then.new_generations],
        asked_changes=[*first.asked_changes, *then.asked_changes],
    )


def _sums(first: Mapping[str, int], then: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + then.get(name, 0) for name in sorted({*first, *then})}


def _joined_groups(groups: Iterable[tuple[int, RowGroup]], pipeline: str) -> list[tuple[int, RowGroup]]:
    """Return one row group for each name of a table."""
    by_name: dict[tuple[str, str], tuple[int, RowGroup]] = {}
    for seq, group in groups:
        name = (group.database, group.table)
        if group.database:  # errors stand under no table
            by_name[name] = (seq, _joined_group(by_name[name][1], group) if name in by_name else group)
    file = folded_rows_file(pipeline)
    return [(seq, replace(group, file=file, row_group=n)) for n, (seq, group) in enumerate(by_name.values())]


def _joined_group(first: RowGroup, then: RowGroup) -> RowGroup:
    snapshots = dict(first.snapshots)
    for position, sent in then.snapshots:
        snapshots[position] = max(sent, snapshots.get(position, sent))
    both = (first, then)
    return replace(
        then,
        rows=first.rows + then.rows,
        min_position=min(group.min_position for group in both),
        max_position=max(group.max_position for group in both),
        max_source_time=max((g.max_source_time for g in both if g.max_source_time is not None), default=None),
        min_source_time=min((g.min_source_time for g in both if g.min_source_time is not None), default=None),
        clears=sorted({*first.clears, *then.clears}),
        removals=first.removals + then.removals,
        snapshots=sorted(snapshots.items()),
        loaded_until=max(group.loaded_until for group in both),
        changes_from=min((g.changes_from for g in both if g.changes_from is not None), default=None),
        image_bytes=first.image_bytes + then.image_bytes,
        before_bytes=first.before_bytes + then.before_bytes,
        images_of=None,
    )
