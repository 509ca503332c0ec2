# SPDX-License-Identifier: Apache-2.0
"""Each set-up ends right, wherever its batches end: at every second place, with CDC_SEEDS=2 at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.public_cases.case import NAMES, Case, Ending, Ends, checked, problem, read_case, stored_rows
from tests.sample import ALL


def run(case: Case, cut: list[Ends], log: Log, root: Path) -> Ending:
    """Carry out the batches of one cut."""
    try:
        pipeline = checked(case.config(root))
    except ConfigurationError as error:
        return Ending(refused=str(error), exits=[2])
    for records in log.partitions.values():
        records.clear()
    stated = case.pipeline
    tables = pipeline.tables.document() if stated.get("tables") else {}
    script = Script(
        log, root, stated["format"], stated.get("schema_topic"), dict(stated.get("options", {})), tables=tables
    )
    for record in case.records:
        script.send(Record(record.topic, record.partition, record.timestamp, record.key, record.value))
    ending = Ending()
    for ends in cut:
        try:
            script.sync(ends)
        except CdcError as error:
            ending.refused = str(error)
            return ending
    for state in script.states.values():
        if state.state != "dropped":
            location = DeltaLocation(table_location(str(root), state.database, state.table), {})
            rows = stored_rows([c.to_pylist() for c in location.rows().columns]) if location.exists else None
            ending.tables[f"{state.database}.{state.table}"] = str(state.state), state.reason, rows
    return ending


@pytest.mark.parametrize("name", NAMES)
def test_the_outcome_is_right_at_every_cut(name: str, log: Log, tmp_path: Path) -> None:
    case = read_case(name)
    every = list(case.cuts())
    some = every if ALL else [*every[:-1:2], every[-1]]
    cuts = [case.stated_cut(), *([case.ends(count) for count in counts] for counts in some)]
    problems, kinds = [], set()
    for number, cut in enumerate(cuts):
        ending = run(case, cut, log, tmp_path / str(number))
        kinds.add(str(sorted(ending.kind.items())))
        if text := problem(case, ending):
            problems.append(f"batches to {cut}: {text}")
    assert not problems, "\n".join(problems)
    assert len(kinds) == 1, kinds
