# SPDX-License-Identifier: Apache-2.0
"""Remove rows that a table keeps for some days only, in a commit that says nothing else of the table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.sinks.commits import MAINTENANCE, Commit
from spark_jobs.sinks.contract import Action, Sink, Stored


def remove_expired(sink: Sink[Stored], target: Stored, app: str, key: Sequence[str], expired: pc.Expression) -> int:
    """Remove stored rows; return how many. What the table states of its newest batch stays.

    :param app: of the table's commits.
    :param key: names of the columns that identify a row.
    :param expired: is true of the rows that go.
    :raises UnavailableError: ``sink.commit_conflict``: to be done again; or the store failed.
    """
    seq = target.applied(app)
    old = [rows.filter(expired) for rows in target.pieces()]
    count: int = sum(rows.num_rows for rows in old)
    if not count or seq is None:
        return 0
    gone = pa.concat_tables(old)
    facts = {**(target.facts(app) or {"app": app, "seq": seq}), MAINTENANCE: "expired rows"}
    action = Action("merge", Commit(app, seq, facts), gone.slice(0, 0), gone.select(list(key)), list(key))
    sink.task_writer().commit(target, action)
    return count
