# SPDX-License-Identifier: Apache-2.0
"""A task's way to a Spark worker and back: its own error is an answer, keeps its type and is not tried four times."""

from __future__ import annotations

import pickle
import socket
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from spark_jobs.workers.garbage_collection import collect_seldom


class _Refused:
    """Refuses pandas and knows nothing of anything else; a None in ``sys.modules`` would confuse pyarrow."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def shut_out_pandas() -> None:
    """Keep pandas out of this process: nothing here needs it, and pyarrow loads it, for a quarter of a second."""
    if _Refused not in sys.meta_path:
        sys.meta_path.insert(0, _Refused)


def sent(item: Any) -> bytes:
    """Return what a task is sent of its item: tables are described alike, compressed they are a tenth."""
    return zlib.compress(pickle.dumps(item), 1)


def _caught(pickled: bytes, counts: tuple[Any, Any], pandas: bool, item: bytes) -> tuple[bool, Any]:
    if not pandas:
        shut_out_pandas()
    collect_seldom()
    try:
        from spark_jobs.workers.progress import count_elsewhere

        count_elsewhere(counts[0].add, counts[1].add)
        return True, pickle.loads(pickled)(pickle.loads(zlib.decompress(item)))
    except CdcError as error:
        return False, error
    except ModuleNotFoundError as error:
        return False, _package_missing(error)


def _package_missing(error: ModuleNotFoundError) -> CdcError:
    """Return the error of an executor whose Python lacks a package; trying again would find the same Python."""
    missing = ConfigurationError(
        [f"spark: {sys.executable} on {socket.gethostname()}, which runs the executors' tasks, lacks {error.name}"]
    )
    missing.hint = (
        "install airflow-provider-cdc[spark] there, or name a Python that has it in spark.python or, for the executors "
        "alone, in spark.conf as spark.pyspark.python"
    )
    return missing


def carried(
    function: Callable[[Any], Any], counts: tuple[Any, Any], *, pandas: bool = True
) -> Callable[[bytes], tuple[bool, Any]]:
    """Return the function of an item that is sent (:func:`sent`), with its CdcError turned into an answer.

    :param counts: Spark's accumulators of the rows and tables that are done.
    :param pandas: whether pyarrow may load pandas; sessions of Spark need it.
    """
    # in a pickle of its own: a worker shuts pandas out before it imports the function's module, which makes arrays
    return partial(_caught, pickle.dumps(function), counts, pandas)


def raised(answer: tuple[bool, Any]) -> Any:
    """Return the answer, or raise the error it carries."""
    good, value = answer
    if not good:
        raise value
    return value
