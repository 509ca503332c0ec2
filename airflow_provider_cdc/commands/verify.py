# SPDX-License-Identifier: Apache-2.0
"""Run ``verify``: compare tables with the change log."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from airflow_provider_cdc.commands.output import DATA, DONE, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.reporting.reporter import at_a_command_line

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.verify import Verdict

_SHOWN = 50


def verify(args: Namespace) -> int:
    """Compare tables with the change log; the exit code is 3 where one differs, or cannot be compared."""
    from airflow_provider_cdc.batch.verify import verify

    with at_a_command_line() as say:
        verdict = verify(CdcPipeline.from_yaml(args.pipeline), args.tables, say=say)
    if args.json:
        print_json({**verdict.document(), "equal": verdict.equal})
    else:
        _print(verdict)
    return DONE if verdict.equal else DATA


def _print(verdict: Verdict) -> None:
    words = {True: "equal", False: "differs", None: "unknown"}
    kinds = ("row_missing", "row_unexpected", "row_differs", "columns_differ")
    print(f"{verdict.pipeline}: {len(verdict.tables)} tables compared with the change log up to batch {verdict.seq}")
    if not verdict.tables:
        return
    print()
    rows = [
        [
            table.table,
            words[table.equal],
            table.rows,
            *(table.counts.get(kind, 0) for kind in kinds),
            table.reason or None,
        ]
        for table in verdict.tables
    ]
    print_table(("table", "verdict", "equal rows", *(kind.replace("_", " ") for kind in kinds), "reason"), rows)
    named = [(table.table, one.kind, ", ".join(one.row)) for table in verdict.tables for one in table.differences]
    if named:
        print()
        print_table(("table", "difference", "key or row"), named[:_SHOWN])
        if len(named) > _SHOWN:
            print(f"and {len(named) - _SHOWN} more: --json has them")
