# SPDX-License-Identifier: Apache-2.0
"""Hand tasks out over Spark Connect, which has no RDDs: as rows of a DataFrame, through ``mapInArrow``."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import ConfigurationError
from spark_jobs.workers.encryption import RELEVANT
from spark_jobs.workers.task_transport import carried, raised, sent

if TYPE_CHECKING:
    import pyarrow as pa

Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

_TASKS = "8"  # at a time, where neither the policy nor the server's configuration states a number


class _Nowhere:
    """Counts nothing: Spark Connect has no accumulators."""

    def add(self, count: int) -> None:
        pass


def connected(job: Any, payload: str, say: Callable[[str], None]) -> tuple[Run, Callable[[], None], dict[str, str]]:
    """Return what runs tasks, what ends the session, and what is known of Spark's configuration.

    :param payload: zip with the code, for workers that lack it.
    :raises ConfigurationError: the job needs what Spark Connect lacks.
    """
    if job.session:
        raise ConfigurationError(["policy.writer and policy.reader: 'spark' needs more than Spark Connect has"])
    from pyspark.sql import SparkSession

    session: Any = SparkSession.builder.getOrCreate()
    if payload:
        session.addArtifacts(payload, pyfile=True)
    say(f"Spark Connect {session.version}")
    conf = {"spark.default.parallelism": _TASKS}
    for name in ("spark.default.parallelism", *RELEVANT):
        with suppress(Exception):  # platforms hide properties of their own
            if value := session.conf.get(name, ""):
                conf[name] = value

    def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if not items:
            return []
        task = carried(function, (_Nowhere(), _Nowhere()))

        def answers_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa

            for batch in batches:
                for number, item in zip(batch["number"].to_pylist(), batch["item"].to_pylist(), strict=True):
                    answer = pickle.dumps(task(item))
                    yield pa.RecordBatch.from_pydict({"number": [number], "answer": [answer]})

        rows = session.createDataFrame([(n, sent(item)) for n, item in enumerate(items)], "number long, item binary")
        spread = rows.repartition(len(items)).mapInArrow(answers_of, "number long, answer binary")
        answers = {row["number"]: pickle.loads(row["answer"]) for row in spread.collect()}
        return [raised(answers[n]) for n in range(len(items))]

    return run, (lambda: None), conf
