# SPDX-License-Identifier: Apache-2.0
"""Random histories whose change log is removed after each batch: a table is equal, or refused because of that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Maintenance
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.maintenance import maintain
from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.retention import REFUSED
from tests.histories.run import Replay, described, inline
from tests.histories.source import Picture
from tests.histories.tools import TOOLS
from tests.sample import amount

SEEDS = range(400, 408)
LEAST = amount(2, 4)  # more where those show nothing of what is asked for


class Forgetful(Replay):
    """Removes what is old from the change log after each batch; the newest batch stays.

    :ivar removed: files that were removed.
    :ivar refused: tables that were refused because of that.
    """

    removed = 0
    refused = 0

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(number, chunks, picture)
        if not problems and self._seqs:
            self.log.arm(None)
            order = Maintenance(1 << 20, 24, expire_through=number)
            self.removed += maintain(self._job(number + 1, []), order, {}, inline).expired.files
        return problems

    def _differences(self, picture: Picture) -> list[str]:
        refused = [state for state in self.states.values() if REFUSED in state.reason]
        late = {f"{state.database}.{state.table}" for state in refused}
        self.parked |= {state.table_id: REFUSED for state in refused}  # a renamed one stays where it is
        self.refused += len(late)
        return [problem for problem in super()._differences(picture) if not any(name in problem for name in late)]


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_no_table_is_wrong_for_want_of_old_rows(name: str, log: Log, lake: Path) -> None:
    removed = 0
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and removed:
            break
        case = replace(case_of(name, seed, sizes=(5, 8)), batches=4, ends=())
        history = Forgetful(case, log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        removed += history.removed
    assert removed > 0
