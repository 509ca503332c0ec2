# SPDX-License-Identifier: Apache-2.0
"""Long work says how far it is: what an engine counts, what a log gets, what a terminal shows."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import Progress
from airflow_provider_cdc.reporting.reporter import Reporter, at_a_command_line, bar, reported
from spark_jobs.workers.progress import begin, step_reports
from tests.unit.spark_jobs.debezium_batches import carry_out, change

HALF = Progress("apply", 40.0, rows=3_000, all_rows=6_000, tables=3, all_tables=6)


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_of_output() -> None:
    assert Progress.of_line(HALF.line()) == HALF
    others = ["land: 5 records", "progress of a table", 'progress {"step"', "progress []", 'progress {"rows": 1}']
    assert [Progress.of_line(line) for line in others] == [None] * 5


@pytest.mark.parametrize(
    ("progress", "sentence"),
    [
        (HALF, "apply: 3 of 6 tables, 3000 of 6000 rows, 40 s, about 40 s left"),
        (Progress("land", 30.2, rows=10, all_rows=40), "land: 10 of 40 records, 30 s, about 91 s left"),
        (Progress("land", 3.0, rows=10, all_rows=40), "land: 10 of 40 records, 3 s"),
        (Progress("land", 60.0, all_rows=40), "land: 0 of 40 records, 60 s"),
        (Progress("apply", 9.0, rows=50, all_rows=40), "apply: 40 of 40 rows, 9 s, about 0 s left"),
        (Progress("change log", 9.4), "change log: 9 s"),
    ],
)
def test_the_rest_is_guessed_once_there_is_something_to_guess_from(progress: Progress, sentence: str) -> None:
    assert progress.sentence() == sentence


def test_a_bar_is_as_long_as_what_is_done() -> None:
    assert bar(HALF) == f"[##########..........]  50%  {HALF.sentence()}"
    assert bar(Progress("change log", 1.0)) == "change log: 1 s"


@pytest.mark.parametrize("policy", [RunPolicy(), RunPolicy(bucket_rows=2)], ids=["whole", "buckets"])
def test_each_step_ends_with_all_that_it_had_to_do(
    policy: RunPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    batch = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
    with step_reports(lines.append, every=60):
        carry_out(tmp_path, [batch], policy, monkeypatch)
    ends = {said.step: said for line in lines if (said := Progress.of_line(line)) is not None}
    land, apply = ends["land"], ends["apply"]
    assert (land.rows, land.all_rows, land.all_tables) == (8, 8, 0)
    assert (apply.rows, apply.all_rows, apply.tables, apply.all_tables) == (8, 8, 1, 1)


def test_a_step_is_reported_while_it_lasts_and_no_longer() -> None:
    said, twice = list[str](), threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            twice.set()

    with step_reports(say, every=0.001):
        begin("land", rows=7)
        assert twice.wait(30)
    count = len(said)
    first = Progress.of_line(said[0])
    assert first is not None and (first.step, first.rows, first.all_rows) == ("land", 0, 7)
    assert not any(thread.name == "progress" for thread in threading.enumerate()) and len(said) == count


def test_a_log_gets_the_newest_progress_at_intervals() -> None:
    written, enough = list[str](), threading.Event()

    def write(line: str) -> None:
        written.append(line)
        if written.count(HALF.sentence()) == 2:
            enough.set()

    with Reporter(write, every=0.001).at_work() as reporter:
        reporter("batch 1")
        with reporter.engine() as take:
            take(HALF)
            assert enough.wait(30)
        reporter("done")
    said = {"batch 1", HALF.sentence(), "done"}
    assert said <= set(written)
    assert all(line in said or line.startswith("at work for ") for line in written)


def test_a_callers_own_reporter_is_used() -> None:
    own = Reporter(print)
    with reported(own) as reporter:
        assert reporter is own
    with reported(print) as other:
        assert other is not own


def test_a_terminal_shows_a_bar_that_goes_when_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with at_a_command_line() as say, say.engine() as take:
        say("batch 1\x1b[31m")
        take(HALF)
    shown = terminal.getvalue()
    assert "batch 1\\u001b[31m\n" in shown and "at work" in shown and "[##########....." in shown
    assert shown.endswith("\r\x1b[2K")


def test_a_pipe_gets_lines_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with at_a_command_line() as say, say.engine() as take:
        say("batch 1")
        take(HALF)
    assert capsys.readouterr() == ("", "batch 1\n")
