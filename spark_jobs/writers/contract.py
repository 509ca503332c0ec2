"""What a writer is asked to do with one table, whoever does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from spark_jobs.writers.task_writer import DeltaLocation

Verb = Literal["create", "append", "merge", "overwrite"]


@dataclass(frozen=True, slots=True)
class Commit:
    """What every commit of ours carries.

    :param app: application id of the table's transactions.
    :param seq: the batch; a table never takes the same or an older one again.
    :param facts: small JSON data for people and for repeats.
    """

    app: str
    seq: int
    facts: dict[str, Any]


@dataclass(slots=True)
class Action:
    """One commit to make.

    :param rows: to create with, append, overwrite with, or to put in by key.
    :param deletes: keys to remove, for ``merge``.
    :param key: names of the key's columns, for ``merge``.
    """

    verb: Verb
    commit: Commit
    rows: pa.Table
    deletes: pa.Table | None = None
    key: Sequence[str] = field(default_factory=tuple)


class Writer(Protocol):
    """Makes commits; one behaviour suite runs over all of them."""

    def commit(self, place: DeltaLocation, action: Action) -> int | None:
        """Carry out one action in one commit that bears ``action.commit``.

        :return: the table's version then, None where that is known only later.
        :raises UnavailableError: nothing of it is visible; may succeed later.
        """
        ...
