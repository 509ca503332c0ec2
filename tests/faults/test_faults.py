# SPDX-License-Identifier: Apache-2.0
"""A few rounds of faults; ``make faults N=100`` runs as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.kinds import KINDS
from tests.faults.rounds import Round
from tests.faults.services import Services
from tests.faults.store import FAULTS, Fault
from tests.sample import ALL
from tests.services.process import NotAvailable

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with Services(tmp_path_factory.mktemp("services")) as running:
        yield running


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("number", "kind", "sink"),
    [
        (1, "cut", "iceberg"),
        (2, "unheard", "delta merge-on-read"),
        (3, "second host", "delta"),
        (4, "stopped beyond lease", "iceberg copy-on-write"),
        (5, "lost file", "delta"),
    ],
)
def test_after_a_fault_every_table_equals_the_source(
    number: int, kind: str, sink: str, services: Services, tmp_path: Path
) -> None:
    one = Round(number, kind, services, tmp_path / "round", batches=3 if ALL else 2, sink=sink)
    one.run(KINDS[kind])
    assert not one.problems


@pytest.mark.skipif(not ALL, reason="a minute each, most of it between attempts: CDC_SEEDS=2 runs them")
@pytest.mark.parametrize("store", ["gs", "abfss", "hdfs"])
@pytest.mark.parametrize("kind", ["cut", "reset", "503", "unheard"])
def test_after_a_fault_of_another_store(kind: Fault, store: str, services: Services, tmp_path: Path) -> None:
    try:
        one = Round(6 + FAULTS.index(kind), kind, services, tmp_path / "round", store=store)
    except NotAvailable as reason:
        pytest.skip(str(reason))
    one.run(KINDS[kind])
    assert not one.problems
