# SPDX-License-Identifier: Apache-2.0
"""Set-ups through a real broker and the command line, in one batch; one of them with the installed command.

Each third one, with CDC_SEEDS=2 all.

``--every-cut`` also cuts each in two anywhere, and into single records: ten minutes, which the suite spends in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import rows
from tests.public_cases.case import NAMES, Case, Ending, problem, read_case, stored_rows
from tests.services import capture, forked

if TYPE_CHECKING:
    from tests.services.broker import Broker

COMMAND = Path(sys.executable).with_name("airflow-cdc")


class Pipeline:
    """A case's pipeline over topics with a prefix of their own."""

    def __init__(self, case: Case, broker: Broker, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._ledger = f"sqlite:///{folder / 'ledger.db'}"
        self.case, self.folder, self._broker = case, folder, broker
        self._prefix = f"{case.name}-{uuid.uuid4().hex[:8]}."
        connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
        home = {"AIRFLOW_HOME": str(folder / "home"), "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection)}
        self._environment = {**os.environ, **home}
        document = case.config(folder / "lake", ledger=self._ledger)
        document["policy"] = {"engine": "inline"}
        source = document["source"]
        source["topics"] = f"{self._prefix.replace('.', chr(92) + '.')}({source['topics']})"
        if "schema_topic" in source:
            source["schema_topic"] = self._prefix + source["schema_topic"]
        self.file = folder / "case.yaml"
        self.file.write_text(yaml.safe_dump(document))

    def send(self, first: int, last: int) -> None:
        """Bring the records from one number to another into the broker."""
        topics = {f"{self._prefix}{r.topic}": 0 for r in self.case.records}
        for record in self.case.records:
            name = self._prefix + record.topic
            topics[name] = max(topics[name], record.partition + 1)
        records = [replace(r, topic=self._prefix + r.topic) for r in self.case.records[first:last]]
        capture.replay(self._broker, records, topics)

    def sync(self) -> tuple[int, str, str]:
        """Carry out one batch; return exit code, output and error output."""
        return forked.run(["sync", str(self.file), "--json"], self._environment, self.folder)

    def ending(self, cut: list[int]) -> Ending:
        """Carry out one batch after each of these numbers of records; return how it ended."""
        ending, sent = Ending(), 0
        for count in cut:
            self.send(sent, count)
            sent = count
            code, out, err = self.sync()
            ending.exits.append(code)
            assert code in (0, 2, 3, 5), err[-2000:]
            said = json.loads(out)
        for state in table_states(Ledger(self._ledger), "case").values() if ending.exits[-1] != 2 else ():
            if state.state != "dropped":
                stored = self._stored(state.database, state.table)
                ending.tables[f"{state.database}.{state.table}"] = str(state.state), state.reason, stored
        if "error" in said and not said["transient"]:
            ending.refused = said["error"]["message"]
        return ending

    def _stored(self, database: str, table: str) -> Any:
        if not (self.folder / "lake" / database / table / "_delta_log").is_dir():
            return None
        content = rows(self.folder / "lake", database, table)
        return stored_rows(list(zip(*(row.values() for row in content), strict=True)))


class Installed(Pipeline):
    """A case's pipeline that the installed command works on."""

    def sync(self) -> tuple[int, str, str]:
        """Carry out one batch as a user's shell does."""
        line = [str(COMMAND), "sync", str(self.file), "--json"]
        ended = subprocess.run(
            line, capture_output=True, text=True, env=self._environment, cwd=self.folder, timeout=120
        )
        return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.system
def test_the_installed_command_gives_the_right_outcome(broker: Broker, tmp_path: Path) -> None:
    case = read_case(NAMES[0])
    assert problem(case, Installed(case, broker, tmp_path / "case").ending([len(case.records)])) == ""


@pytest.mark.system
@pytest.mark.every(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_gives_the_right_outcome(
    name: str, broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case = read_case(name)
    every = list(case.cuts())
    cuts = every if request.config.getoption("--every-cut") else every[:1]
    problems = []
    for number, cut in enumerate(cuts):
        ending = Pipeline(case, broker, tmp_path / str(number)).ending(cut)
        if text := problem(case, ending):
            problems.append(f"batches to {cut}: {text} (exits {ending.exits})")
    assert not problems, "\n".join(problems)
