# SPDX-License-Identifier: Apache-2.0
"""PySpark's worker daemon on the driver's own machine: it loads once what tasks need, then forks the workers."""

from __future__ import annotations

import gc
from importlib import import_module
from importlib.util import find_spec

from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from spark_jobs.workers.module_path import prefer_installed
from spark_jobs.workers.task_transport import shut_out_pandas

# A fork takes no threads along: these start none at import but those that their memory allocators know to do without.
_LOADED = ("confluent_kafka", "spark_jobs.tasks.land", "spark_jobs.tasks.apply")


def main() -> None:
    """Load, then become PySpark's daemon (``spark.python.daemon.module``)."""
    prefer_installed()
    shut_out_pandas()
    sinks = [kind.writer for kind in SINKS.values() if find_spec(kind.library) is not None]
    for name in (*_LOADED, *sinks):
        import_module(name)
    from pyspark.daemon import manager

    gc.freeze()  # what is loaded stays, and PySpark has a worker look through all objects after each task
    manager()


if __name__ == "__main__":
    main()
