# SPDX-License-Identifier: Apache-2.0
"""Submit an application by the hook of Airflow's Spark provider."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from airflow_provider_cdc.connections.lookup import SparkTarget, mask
from airflow_provider_cdc.engine.task import EngineTask, die_with_parent


def bound_hook(
    conn_id: str, target: SparkTarget, task: EngineTask, forward: Callable[[str], None], **arguments: Any
) -> Any:
    """Return the provider's hook, bound to the resolved master: without a connection it would take YARN.

    :param forward: takes each line of spark-submit.
    :param arguments: further ones of the hook.
    """
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Connection

    logger = _logger(forward)
    mask()  # the secrets that were read before Airflow was loaded
    extra = {**target.extra, "deploy-mode": target.deploy_mode} if target.deploy_mode else dict(target.extra)
    resolved = Connection(conn_id=conn_id, conn_type="spark", host=target.master, extra=json.dumps(extra))

    class Hook(SparkSubmitHook):
        """Write to the batch's log and use the resolved connection."""

        @property
        def log(self) -> Any:
            return logger

        @classmethod
        def get_connection(cls, conn_id: str) -> Connection:
            return resolved

    return Hook(conn_id=conn_id, name=f"airflow-cdc {task.name}", deploy_mode=target.deploy_mode, **arguments)


def submit(hook: Any, task: EngineTask, environment: Mapping[str, str], end: Callable[[], None]) -> str:
    """Run spark-submit to its end; return its error, empty if there is none.

    :param end: ends what outlives spark-submit.
    """
    from airflow.providers.common.compat.sdk import AirflowException

    try:
        with task.stopper.running(lambda: _kill(hook, end)):
            # Not the hook's env_vars: on YARN and Kubernetes they would become arguments.
            hook.submit(
                str(task.payload.main), env=dict(environment), start_new_session=True, preexec_fn=die_with_parent
            )
    except AirflowException as error:
        return str(error).splitlines()[0]
    except BaseException:
        _kill(hook, end)
        raise
    return ""


def _kill(hook: Any, end: Callable[[], None]) -> None:
    with suppress(Exception):
        hook.on_kill()
    end()


def _logger(forward: Callable[[str], None]) -> logging.Logger:
    """Return a logger that forwards Spark's lines and drops the hook's own lines about its command."""
    logger = logging.Logger("airflow_provider_cdc.spark", logging.INFO)

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = record.getMessage().rstrip()
            if not line.startswith("Spark-Submit cmd"):
                forward(line)

    logger.addHandler(Handler())
    return logger
