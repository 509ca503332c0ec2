"""The task writer: Delta tables by path through delta-rs, inside the task that resolved them."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.writers.contract import Action
from spark_jobs.writers.delta_location import DeltaLocation


class TaskWriter:
    """Commits through delta-rs in this process."""

    def commit(self, place: DeltaLocation, action: Action) -> int | None:
        """Carry out one action in one commit; returns the version it made."""
        before = -1 if place.version is None else place.version
        match action.verb:
            case "create":
                place.write(_numbered(action.rows), "error", action.commit)
            case "append":
                place.write(action.rows, "append", action.commit)
            case "overwrite":
                place.write(_numbered(action.rows), "overwrite", action.commit, schema_mode="overwrite")
            case "merge":
                assert action.deletes is not None
                place.merge(action.rows, action.deletes, action.key, action.commit)
        # our commit is the next version: one that meets another fails; nothing replaced by nothing is no commit
        return min(before + 1, place.newest_version())


def _numbered(rows: pa.Table) -> pa.Table:
    """Note each column's place beside it: delta-rs takes a schema in another order for the one it has."""
    fields = [field.with_metadata({"cdc.place": str(place)}) for place, field in enumerate(rows.schema, 1)]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))
