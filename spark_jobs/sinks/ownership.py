# SPDX-License-Identifier: Apache-2.0
"""Whose a table is: nothing is replaced, emptied or vacuumed that another pipeline or a person wrote last.

The newest commit that may have changed rows says it: each of ours carries ``cdc/<pipeline>/<table id>/...``.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.sinks.commits import Owner
from spark_jobs.sinks.contract import Stored

NOT_OURS = "sink.not_ours"


def owns(owner: Owner, target: Stored) -> bool:
    """Return whether an owner changed the rows of a table last, as far as its commits show."""
    app = target.newest_app()
    if app is None:  # maintenance came since, and what was before is no longer kept
        known = owner.table_ids or ()
        return any(target.applied(f"{owner.prefix}{table_id}/0") is not None for table_id in known)
    return owner.wrote(app)


def demand_ours(target: Stored, owner: Owner) -> None:
    """Refuse to touch a table that another owner changed last.

    :raises SinkError: ``sink.not_ours``.
    """
    if target.exists and not owns(owner, target):
        raise not_ours({"location": target.location})
    target.is_checked = True


def is_left_to_another(target: Stored, owner: Owner) -> bool:
    """Return whether another table of the pipeline wrote there last, and nobody else since."""
    app = target.newest_app()
    return Owner(owner.prefix).wrote(app) and not owner.wrote(app)


def not_ours(where: dict[str, Any]) -> SinkError:
    """Return the error of a location with a table of somebody else."""
    text = "a table lies there that this pipeline did not make, or that somebody else wrote to last"
    return SinkError(NOT_OURS, text, where=where, hint="move it away")


def demand_target(
    target: Stored,
    app: str,
    *,
    has_own_commit: bool,
    expected: int | None,
    rebuilds: bool,
    where: dict[str, Any],
) -> None:
    """Refuse a table that is not what the pipeline left, before a batch changes it.

    :param app: application of the table that is to be written.
    :param has_own_commit: whether the table has a commit of that application.
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


def _demand_unchanged(target: Stored, owner: Owner, expected: int, where: dict[str, Any]) -> None:
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
