# SPDX-License-Identifier: Apache-2.0
"""Check what must hold after every fault: tables equal to the database, a ledger without gaps, one commit a batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import DATA
from tests.system.site import Site


def unequal(site: Site, phase: int, *, but: Collection[str] = ()) -> dict[str, list[str]]:
    """Return what differs from the database's own content at the end of a phase, by table; empty when all are equal.

    :param but: tables that are not looked at.
    """
    states = site.tables()
    problems: dict[str, list[str]] = {}
    for source in load(DATA / "source_at" / f"{phase}.jsonl.xz"):
        state = states.pop(source.table, None)
        if source.table in but:
            continue
        location = DeltaLocation(str(site.location(source.table)), {})
        differences = differing(source, location.rows()) if location.exists else ["there is no such table in the lake"]
        if state is None or state["state"] != "ok":
            differences.append(f"the ledger says {state and (state['state'], state['reason'])}")
        if differences:
            problems[source.table] = differences[:5]
    problems |= {
        name: ["the database has no such table"]
        for name, state in states.items()
        if state["state"] != "dropped" and name not in but
    }
    return problems


def ledger_faults(site: Site, batches: int) -> list[str]:
    """Return what is wrong with the ledger's batches.

    :param batches: how many with records there must be; a request that finds nothing new records an empty one.
    """
    recorded = site.batches()
    faults = (
        [] if [b["seq"] for b in recorded] == list(range(1, len(recorded) + 1)) else [f"{[b['seq'] for b in recorded]}"]
    )
    full = [b["seq"] for b in recorded if b["start"] != b["end"]]
    faults += [] if len(full) == batches else [f"batches {full} have records"]
    faults += [
        f"batch {b['seq']} is {b['status']}" for b in recorded if b["status"] != "committed" or not b["committed_at"]
    ]
    reached: dict[tuple[str, str], int] = {}
    for batch in recorded:
        for topic, partitions in batch["end"].items():
            for partition, end in partitions.items():
                start, key = batch["start"][topic][partition], (topic, partition)
                if start != reached.get(key, 0):
                    faults.append(f"batch {batch['seq']}: {key} starts at {start}, not {reached.get(key, 0)}")
                reached[key] = end
    return faults


def doubled_commits(lake: Path) -> list[str]:
    """Return application transactions that more than one commit of a table carries, and commits that carry none."""
    problems: list[str] = []
    for log in sorted(lake.glob("[!_]*/*/_delta_log")):
        seen: Counter[tuple[str, int]] = Counter()
        for commit in sorted(log.glob("*.json")):
            marks = [action["txn"] for line in commit.open() if "txn" in (action := json.loads(line))]
            if len(marks) != 1:
                problems.append(f"{commit}: {len(marks)} application transactions")
            seen.update((mark["appId"], mark["version"]) for mark in marks)
        problems += [f"{log.parent.name}: {mark} in {count} commits" for mark, count in seen.items() if count > 1]
    return problems


def versions(lake: Path) -> dict[str, int]:
    """Return each table's newest version."""
    return {
        f"{log.parent.parent.name}.{log.parent.name}": max((int(c.stem) for c in log.glob("*.json")), default=-1)
        for log in sorted(lake.glob("[!_]*/*/_delta_log"))
    }
