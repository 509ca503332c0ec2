# SPDX-License-Identifier: Apache-2.0
"""Find where the source's log begins again in a batch, and give the records after that their places in the new log."""

from __future__ import annotations

from functools import partial

from airflow_provider_cdc.core.errors import DataError
from spark_jobs.driver.approval import demand_approval, refuse_unclear
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.generations import Generations, has_times
from spark_jobs.driver.new_begins import new_begins
from spark_jobs.driver.refused_batches import refuse
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.manifest import Manifest
from spark_jobs.tasks.renumber import renumbered, restated, write_again


def in_generations(batch: BatchContext, landed: Manifest) -> tuple[Manifest, Generations]:
    """Return what was landed with the generations that begin in it, and all generations with them.

    :raises DataError: ``source.new_generation``, one begins that nobody approved; ``source.generation_unclear``, the
        records do not show which are of it. The batch counts as refused then.
    """
    try:
        return _in_generations(batch, landed)
    except DataError:
        refuse(batch.job, landed, batch.log)
        raise


def _in_generations(batch: BatchContext, landed: Manifest) -> tuple[Manifest, Generations]:
    job, history, storage = batch.job, batch.history, batch.storage
    as_landed, known = landed, [*job.schema_changes, *history.deferred()]
    generations = history.generations().with_begins(Begin(*begin) for begin in landed.begins)
    if (late := generations.read_late(landed)) is not None:
        refuse_unclear(*late)
    while begins := new_begins(landed, generations, storage):
        refuse_unclear(begins[0].name, generations.read_early(begins), timed=has_times(landed))
        approved = demand_approval(job, begins, generations.newest, batch.log, batch.say)
        generations = generations.with_begins(begins)
        every = generations.begins()
        again = partial(write_again, job, batch.secrets, every)
        landed = renumbered(landed, every, begins, storage, batch.run, again)
        landed.restated = [*landed.restated, *restated(known, begins)]
        landed.new_generations = [*landed.new_generations, *approved]
    if landed is not as_landed:
        batch.log.replace_manifest(job, landed)
    return landed, generations
