# SPDX-License-Identifier: Apache-2.0
"""Whose a Delta table is: nothing is replaced, emptied or vacuumed that another pipeline or a person wrote last.

The newest commit that may have changed rows says it: each of ours carries ``cdc/<pipeline>/<table id>/...``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import SinkError

if TYPE_CHECKING:
    from spark_jobs.sinks.delta.table import DeltaLocation

NOT_OURS = "sink.not_ours"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a table has to be.

    :param prefix: of the applications of a pipeline, ``cdc/<pipeline>/``.
    :param table_ids: the tables of it that may have written last; None for any: names pass from table to table.
    """

    prefix: str
    table_ids: Collection[str] | None = None

    @staticmethod
    def of(app: str) -> Owner:
        """Return the pipeline whose application this is."""
        return Owner(app.rsplit("/", 2)[0] + "/")

    def wrote(self, app: str | None) -> bool:
        """Return whether an application, None for an unknown one, is of this owner."""
        if app is None or not app.startswith(self.prefix):
            return False
        return self.table_ids is None or app.removeprefix(self.prefix).rsplit("/", 1)[0] in self.table_ids

    def owns(self, target: DeltaLocation) -> bool:
        """Return whether this owner changed the rows of a table last, as far as its log shows."""
        app = target.newest_app()
        if app is None:  # maintenance came since, and the log no longer has what was before
            known = self.table_ids or ()
            return any(target.applied(f"{self.prefix}{table_id}/0") is not None for table_id in known)
        return self.wrote(app)


def demand_ours(target: DeltaLocation, owner: Owner) -> None:
    """Refuse to touch a table that another owner changed last.

    :raises SinkError: ``sink.not_ours``.
    """
    if target.exists and not owner.owns(target):
        raise not_ours({"location": target.location})
    target.is_checked = True


def not_ours(where: dict[str, Any]) -> SinkError:
    """Return the error of a location with a table of somebody else."""
    text = "a Delta table lies there that this pipeline did not make, or that somebody else wrote to last"
    return SinkError(NOT_OURS, text, where=where, hint="move it away")


def demand_target(
    target: DeltaLocation,
    app: str,
    *,
    has_own_commit: bool,
    expected: int | None,
    rebuilds: bool,
    where: dict[str, Any],
) -> None:
    """Refuse a table that is not what the pipeline left, before a batch changes it.

    :param app: application of the table that is to be written.
    :param has_own_commit: whether the table's log has a commit of that application.
    :param expected: version that the pipeline's newest commit made there, None where it is not known to have made one.
    :param rebuilds: whether the rows are made again: of a table of ours also where somebody else changed them.
    :param where: table and location, for errors.
    :raises SinkError: ``sink.not_ours``, ``sink.changed_by_other``.
    """
    owner = Owner.of(app)
    if expected is None and not rebuilds:
        newest = target.newest_app()
        is_ours = owner.wrote(newest) or (newest is None and has_own_commit)
    elif has_own_commit:
        is_ours = not rebuilds or owner.wrote(target.newest_app(of_anybody=False) or app)
    else:
        is_ours = owner.wrote(target.newest_app(of_anybody=rebuilds))
    if not is_ours:
        raise not_ours(where)
    if expected is not None and not rebuilds:
        _demand_unchanged(target, owner, expected, where)
    target.is_checked = True


def _demand_unchanged(target: DeltaLocation, owner: Owner, expected: int, where: dict[str, Any]) -> None:
    """Refuse a table that somebody else changed since a version and did not restore."""
    other = target.foreign_commit(expected, owner)
    if other is not None and target.holds_same(target.at_version(expected)):
        other = None
    if other is not None or (target.version or 0) < expected:
        raise SinkError(
            "sink.changed_by_other",
            f"another writer changed the table ({other or 'older version'})",
            where={**where, "expected_version": expected, "found_version": target.version},
            hint="restore the table to the expected version, then run again",
        )
