# SPDX-License-Identifier: Apache-2.0
"""Random histories in which each batch is previewed: what it does then is what was said, and nothing was written."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from spark_jobs.driver.run_batch import sync
from tests.histories.cases import case_of
from tests.histories.checksums import checksums
from tests.histories.log import Log
from tests.histories.routed import Routed
from tests.histories.run import Replay, described, inline
from tests.histories.tools import TOOLS
from tests.sample import amount

SEEDS = range(300, 300 + amount(2, 4))


def outcome(result: Result) -> dict[str, Any]:
    """Return what a batch does, without what only its commits decide."""
    lines = [
        (line.database, line.table, line.action, line.upserts, line.deletes, line.writer, _cause(line.reason))
        for line in result.tables
        if line.status != ApplyStatus.REPEATED
    ]
    return {
        "tables": sorted(lines),
        "states": sorted(
            (s.table_id, s.state, _cause(s.reason), s.applied_seq, s.applied_position) for s in result.states
        ),
        "statements": [(change["position"], change["statement"]) for change in result.new_schema_changes],
        "counts": (result.records, result.changes, result.quarantined, result.lossy, result.status),
    }


def _cause(reason: str) -> str:
    """Return a reason without the record that it names: the first one read, and files have random names."""
    return reason.split(" (")[0]


def stored(folder: Path) -> dict[str, dict[str, int]]:
    """Return the sizes of the files of each table below a folder, by location."""
    sizes = {}
    for log in folder.rglob("_delta_log"):
        files = pa.table(DeltaTable(str(log.parent)).get_add_actions())
        names, bytes_of = (files.column(name).to_pylist() for name in ("path", "size_bytes"))
        sizes[str(log.parent)] = dict(zip(names, bytes_of, strict=True))
    return sizes


class Previewed(Replay):
    """Previews each batch before it is carried out, and counts the comparisons.

    :ivar rewritten: tables of which a batch wrote files again.
    """

    compared = 0
    rewritten = 0

    def _sync(self, job: JobDocument) -> Result:
        expected = None if self._armed() else self._preview(job)
        before = stored(self.root)
        result = super()._sync(job)
        if expected is not None and not result.lake_batches:
            assert outcome(expected) == outcome(result)
            self.compared += 1
            self._compare_files(job, expected, result, before)
        return result

    def _compare_files(
        self, job: JobDocument, expected: Result, result: Result, before: dict[str, dict[str, int]]
    ) -> None:
        """Compare the files that a preview names, and their bytes, with those that the batch replaced."""
        after = stored(self.root)
        locations = {
            (state.database, state.table): located(str(self.root), state.location)
            for state in (*job.states, *result.states)
            if state.state != TableStatus.DROPPED
        }
        for line, done in zip(expected.tables, result.tables, strict=True):
            location = locations.get((line.database, line.table))
            if location is None or done.status == ApplyStatus.REPEATED:
                continue
            files = before.get(location, {})
            gone = [size for name, size in files.items() if name not in after.get(location, {})]
            assert (line.files, line.file_bytes) == (len(gone), sum(gone)), (location, line, done)
            self.rewritten += bool(gone)

    def _armed(self) -> bool:
        return self.log.crash is not None

    def _preview(self, job: JobDocument) -> Result | None:
        before, commits = checksums(self.root), self.log.commits
        scratch = self.root.parent / "scratch"
        scratch.mkdir()
        try:
            expected: Result | None = sync(replace(job, scratch=str(scratch)), {}, inline, lambda line: None)
        except CdcError:
            expected = None  # the batch itself is refused in the same way
        finally:
            shutil.rmtree(scratch)
        assert (checksums(self.root), self.log.commits) == (before, commits)
        return expected


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_what_a_preview_says_is_what_the_batch_does(name: str, log: Log, lake: Path) -> None:
    compared = 0
    for seed in SEEDS:
        # an attempt that died leaves tables that are committed already: a repeat reports them as such
        case = replace(case_of(name, seed, sizes=(5, 8)), crashes=0.0, losses=0.0)
        history = Previewed(case, log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        compared += history.compared
    assert compared >= len(SEEDS) // 2


class PreviewedAndRouted(Previewed, Routed):
    """Previews batches whose rules of target change."""


def test_a_preview_says_which_tables_other_rules_move(log: Log, lake: Path) -> None:
    compared = 0
    for seed in SEEDS:
        case = replace(case_of("debezium-json", seed, sizes=(5, 8)), crashes=0.0, losses=0.0)
        history = PreviewedAndRouted(case, log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        compared += history.compared
    assert compared >= len(SEEDS)
