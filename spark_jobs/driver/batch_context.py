# SPDX-License-Identifier: Apache-2.0
"""Hold what the steps of a batch share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class BatchContext:
    """One batch on its way through the steps.

    :param job: what is to be done; steps add what the lake and the records say.
    :param run: how tasks are handed out.
    :param say: takes one line of progress for people.
    :param session: lets the Spark reader and the Spark writer be used.
    :param storage: the lake.
    :param log: the documents of this batch and others in the lake.
    :param history: the batches before.
    """

    job: JobDocument
    secrets: Secrets
    run: Runner
    say: Callable[[str], None]
    session: SparkSession | None
    storage: Storage
    log: BatchLog
    history: History
