# SPDX-License-Identifier: Apache-2.0
"""Random histories in which tables are damaged or deleted between the batches and rebuilt: they end equal."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.cases import case_of
from tests.histories.ddl_statements import Alter, ChangeColumn, Create, Drop, Place, Rename
from tests.histories.log import Log
from tests.histories.plain_tables import KEYED, KEYLESS, T, U, rows
from tests.histories.rebuilding import WithRebuilds
from tests.histories.row_statements import Insert
from tests.histories.run import Case, Replay, described
from tests.histories.source import Picture, Structure
from tests.histories.tools import TOOLS, Style
from tests.sample import amount

SEEDS = range(600, 606)
LEAST = amount(1, 3)  # more where those show nothing of what is asked for


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_rebuilt_tables_equal_the_model_and_go_on(name: str, log: Log, lake: Path) -> None:
    rebuilt = 0
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and rebuilt:
            break
        history = WithRebuilds(case_of(name, seed, sizes=(5, 8)), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        rebuilt += history.rebuilt
    assert rebuilt > 0


class _Rebuilt(Replay):
    """Deletes ``shop.t`` after a batch, and rebuilds it in a batch of its own.

    :ivar after: the batch.
    """

    after = 2

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(2 * number, chunks, picture)
        if number == self.after:
            shutil.rmtree(self.root / "shop" / "t")
            result = self._sync(replace(self._job(2 * number + 1, []), order=Rebuild(["shop.t"])))
            assert [(line.table, line.status, line.action) for line in result.tables] == [("t", "committed", "create")]
            self._take_over(2 * number + 1, result.document())
        return problems


@pytest.mark.parametrize("structure", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_a_late_alter_takes_a_rebuilt_table_back_behind_its_rebuild(structure: Structure, log: Log, lake: Path) -> None:
    move = Alter(T, (ChangeColumn("b", "b", location=Place(first=True)),))
    statements = (Create(T, structure), rows(1), move, rows(2), rows(3))
    ends = ({"/0": 2, ".shop.t/0": 1}, {".shop.t/0": 2}, {".shop.t/0": 3})
    history = _Rebuilt(Case(0, statements, Style(partitions=1), ends=ends), log, lake)
    problems = history.run()
    assert not problems, described(history.case, history.story, problems)


class _RebuiltFourth(_Rebuilt):
    after = 4


def test_versions_of_dropped_tables_mean_nothing_where_a_table_was_made_again(log: Log, lake: Path) -> None:
    created, away = Create(T, KEYED), Rename(((T, U),))
    statements = (created, rows(1), rows(8), rows(9), Drop((T,)), created, rows(2), away, created, rows(3), rows(4))
    ends = (
        {"/0": 2, ".shop.t/0": 1},
        {".shop.t/0": 2},
        {".shop.t/0": 3},
        {"/0": 4, ".shop.t/0": 4},
        {"/0": 6, ".shop.t/0": 5},
    )
    history = _RebuiltFourth(Case(0, statements, Style(partitions=1), ends=ends), log, lake)
    problems = history.run()
    assert not problems, described(history.case, history.story, problems)


class _RebuiltAtAnOldLocation(_Rebuilt):
    """Lets the table that was renamed go back to a state from before its rename, in the last batch."""

    after = 3

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        if number == 4:
            second = next(state for state in self._second if state.table == "t")
            renamed = self.states[second.table_id]
            assert renamed.table == "u"
            self.states = {**self.states, second.table_id: replace(renamed, rewind_to=second.applied_position)}
        problems = super()._batch(number, chunks, picture)
        if number == 2:
            self._second = list(self.states.values())
        return problems


def test_a_table_goes_back_to_no_version_of_another_one_that_was_made_again_at_its_old_location(
    log: Log, lake: Path
) -> None:
    created = Create(T, KEYLESS)
    statements = (created, rows(1), rows(2), Rename(((T, U),)), created, rows(7), Insert(U, ({"a": 3, "b": 3},)))
    ends = ({"/0": 2, ".shop.t/0": 1}, {".shop.t/0": 2}, {"/0": 4, ".shop.t/0": 3})
    history = _RebuiltAtAnOldLocation(Case(0, statements, Style(partitions=1), ends=ends), log, lake)
    problems = history.run()
    assert not problems, described(history.case, history.story, problems)
