# SPDX-License-Identifier: Apache-2.0
"""Switch off fixes of losses that were silent once, and see who notices: ``python -m tests.histories.switched_off``.

Each case is played with its fix; without it and ``verify: off``, which has to be silent and wrong, or the switch
switches nothing; and without it and the default ``verify: touched``, the witness alone. Where that notices nothing,
``airflow-cdc verify`` is asked, with the fix switched off too.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Rebuild, Result
from airflow_provider_cdc.core.errors import CdcError
from spark_jobs.driver.run_batch import sync
from tests.histories import silent_lakes, silent_tables, silent_values
from tests.histories.log import Log
from tests.histories.place import lake_folder
from tests.histories.run import inline
from tests.histories.scripted import Script
from tests.histories.silent_case import RIGHT, Noticed, Rows, Silent, Unswitched

ALL = (*silent_tables.CASES, *silent_values.CASES, *silent_lakes.CASES)
CASES = [case for case in ALL if isinstance(case, Silent)]
UNSWITCHED = [case for case in ALL if isinstance(case, Unswitched)]
_UNSETTLED = ("parked", "waiting")


@dataclass(frozen=True)
class Moment:
    """Hold how things are after a batch.

    :param codes: of what was refused, parked or waits.
    :param kinds: of contradictions.
    :param is_silent: whether a table is wrong and nothing says so.
    """

    codes: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    is_silent: bool = False


@dataclass(frozen=True)
class Outcome:
    """Hold how a case ended; the members are those of :class:`Silent`."""

    fixed: str
    silent: int
    noticed: Noticed
    by: str = ""


def expected(case: Silent) -> Outcome:
    """Return how a case is said to end."""
    return Outcome(case.fixed, case.silent, case.noticed, case.by)


def outcome(case: Silent, log: Log, root: Path) -> Outcome:
    """Play a case with its fix, and without it.

    :param root: an empty folder for its lakes.
    """
    fixed, _ = _played(case, log, root / "fixed", {})
    with pytest.MonkeyPatch.context() as patch:
        case.switch(patch)
        off, _ = _played(case, log, root / "off", {"verify": "off"})
        touched, script = _played(case, log, root / "touched", {})
        silent = next((number for number, moment in enumerate(off, 1) if moment.is_silent), 0)
        noticed, by = _notice(touched, off if silent else fixed, silent)
        if noticed is Noticed.NEVER and (named := _verified(script)):
            noticed, by = Noticed.VERIFY, named
    return Outcome(_summary(fixed), silent, noticed, by)


def _notice(moments: list[Moment], unseen: list[Moment], silent: int) -> tuple[Noticed, str]:
    """Return when, and by what, more is noticed than without the witness.

    :param unseen: the same batches without the witness.
    :param silent: number of the batch from which on rows are wrong in silence; 0 where they never are.
    """
    for number, (moment, other) in enumerate(zip(moments, unseen, strict=False), 1):
        codes = [code for code in moment.codes if code not in other.codes]
        if codes or moment.kinds:
            by = ", ".join([*moment.kinds, "parked" if codes else "counted"])
            return Noticed.LATER if 0 < silent < number else Noticed.SAME, by
    return Noticed.NEVER, ""


def _summary(moments: list[Moment]) -> str:
    if any(moment.is_silent for moment in moments):
        return "wrong in silence"
    return next((", ".join(moment.codes) for moment in moments if moment.codes), RIGHT)


def _played(case: Silent, log: Log, root: Path, policy: Mapping[str, str]) -> tuple[list[Moment], Script]:
    """Carry out the batches of a case, up to the first that is refused."""
    log.partitions.clear()
    root.mkdir(parents=True)
    stated = dict(case.pipeline)
    script = Script(log, root, **{**stated, "policy": {**stated.get("policy", {}), **policy}})
    moments = []
    for truth in case.story(script):
        try:
            result = script.sync()
        except CdcError as error:
            moments.append(Moment((error.code,)))
            break
        kinds = dict.fromkeys(kind for line in result.tables for kind in line.contradictions)
        is_silent = any(_is_silent(case, script, result, name, rows) for name, rows in truth.items())
        moments.append(Moment(_codes(script), tuple(kinds), is_silent))
    return moments, script


def _codes(script: Script) -> tuple[str, ...]:
    states = [state for state in script.states.values() if state.state in _UNSETTLED]
    return tuple(dict.fromkeys(state.code or str(state.state) for state in states))


def _is_silent(case: Silent, script: Script, result: Result, name: str, rows: Rows) -> bool:
    """Return whether a table has other rows than the source, and neither its state nor a contradiction says so."""
    database, table = name.split(".")
    is_said = any(state in _UNSETTLED for state in script.states_of(database, table))
    is_counted = any(line.contradictions for line in result.tables if (line.database, line.table) == (database, table))
    return not is_said and not is_counted and (case.read(script, name) or Counter()) != rows


def _verified(script: Script) -> str:
    """Return what ``airflow-cdc verify`` finds in the tables."""
    names = [f"{state.database}.{state.table}" for state in script.states.values() if state.state == "ok"]
    with tempfile.TemporaryDirectory() as scratch:
        job = replace(script._job(script.ends), order=Rebuild(names, compared=True), scratch=scratch)
        result = sync(job, {}, inline, lambda line: None)
    return ", ".join(dict.fromkeys(kind for line in result.tables for kind in line.contradictions))


def page_lines() -> list[str]:
    """Return the table of docs/concepts/equal.md."""
    lines = ["| what went wrong | the witness alone notices it | because |", "|---|---|---|"]
    for case in sorted(CASES, key=lambda case: list(Noticed).index(case.noticed)):
        by = re.sub(r"[a-z]+_[a-z]+", r"`\g<0>`", case.by)
        lines.append(f"| {case.what} | {case.noticed}{by and f': {by}'} | {case.why} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories.switched_off", description=__doc__)
    parser.add_argument(
        "--page", action="store_true", help="print the table of docs/concepts/equal.md, and play nothing"
    )
    if parser.parse_args(arguments).page:
        print("\n".join(page_lines()))
        return 0
    print(
        "| | what went wrong | with the fix | without it, nothing compared | the witness alone notices it | because |"
    )
    print("|---|---|---|---|---|---|")
    log, counts, problems = Log(), Counter[Noticed](), 0
    with pytest.MonkeyPatch.context() as patch, lake_folder() as lake:
        log.install(patch)
        for number, case in enumerate(CASES):
            ended = outcome(case, log, lake / str(number))
            counts[ended.noticed] += 1
            problems += ended != expected(case)
            off = f"wrong from batch {ended.silent} on" if ended.silent else "parked: the fix is the witness"
            noticed = f"{ended.noticed}: {ended.by}" if ended.by else str(ended.noticed)
            mark = "" if ended == expected(case) else f" (expected {expected(case)})"
            print(f"| {case.kind} | {case.what} | {ended.fixed} | {off} | {noticed}{mark} | {case.why} |", flush=True)
    for one in UNSWITCHED:
        print(f"| {one.kind} | {one.what} | | cannot be switched off | | {one.why} |")
    print("\n" + ", ".join(f"{counts[when]} {when}" for when in Noticed), f"of {len(CASES)}")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
