# SPDX-License-Identifier: Apache-2.0
"""Define what a kind of table does on the driver: prepare Spark, and commit what tasks staged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from airflow_provider_cdc.core.documents import JobDocument

if TYPE_CHECKING:
    from pyspark import SparkContext


class SparkSide(Protocol):
    """Says what Spark can do for large tables, and prepares it for that."""

    def settings(self, job: JobDocument) -> dict[str, str]:
        """Return properties that Spark needs for it, secrets included."""
        ...

    def demand_libraries(self, job: JobDocument, context: SparkContext) -> None:
        """Refuse a batch that Spark may have to write, if it lacks a library for that.

        :param context: with a session.
        :raises ConfigurationError: names what is missing.
        """
        ...

    def can_name(self, columns: Sequence[str]) -> bool:
        """Return whether Spark can write columns of these names."""
        ...

    def obstacle(self, job: JobDocument, *, asked: bool) -> str:
        """Return why Spark takes no merges of a batch, empty where it does.

        :param asked: the pipeline states that they are Spark's; else they are its own only where that surely works.
        """
        ...


class StagedCommits(Protocol):
    """Commits on the driver what tasks staged: through Spark, divided among tasks, or all tables at once.

    :ivar together: readers see the commits of all tables, or of none.
    """

    together: bool

    def commit(self, folders: Sequence[str], parallelism: int) -> Sequence[Exception | None]:
        """Commit what tasks staged, a table in each folder; nothing is done for one with nothing in it.

        :param parallelism: tasks that run at a time.
        :return: of each what went wrong, None for nothing: ``UnavailableError`` where it may succeed later.
        """
        ...
