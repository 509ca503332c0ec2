# SPDX-License-Identifier: Apache-2.0
"""Run batches by Databricks Jobs: one-time runs of the API's ``jobs/runs/submit``, through Airflow's provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.connections.lookup import find_connection
from airflow_provider_cdc.core.config import SparkSettings
from airflow_provider_cdc.core.errors import ConfigurationError, first_line
from airflow_provider_cdc.platforms.contract import RunState, Submission, provider_missing, refused

if TYPE_CHECKING:
    from airflow.providers.databricks.hooks.databricks import DatabricksHook

_DEFAULT_CONNECTION = "databricks_default"
_CALL_SECONDS = 30
_OURS = ("idempotency_token", "run_name")
_START = ("python_wheel_task", "spark_python_task", "spark_jar_task", "spark_submit_task", "notebook_task")


class DatabricksPlatform:
    """Runs of one workspace.

    :param hook: of Airflow's provider.
    :param document: body of the request, without what starts the job.
    """

    def __init__(self, hook: DatabricksHook, document: Mapping[str, Any]) -> None:
        self._hook, self._document = hook, document

    def submit(self, job: Submission) -> str:
        """Start the run of a token; Databricks returns the one that the token has already."""
        (task,) = self._document["tasks"]
        wheel = {
            "package_name": "airflow_provider_cdc",
            "entry_point": "airflow-cdc-job",
            "parameters": list(job.arguments),
        }
        task = {"task_key": "batch", **task, "python_wheel_task": wheel}
        if "new_cluster" in task:
            cluster = task["new_cluster"]
            task["new_cluster"] = {**cluster, "spark_conf": {**job.conf, **cluster.get("spark_conf", {})}}
        named = dict.fromkeys(_OURS, job.token)
        with _explained():
            return str(self._hook.submit_run({**self._document, **named, "tasks": [task]}))

    def state(self, run: str) -> RunState:
        """Return the state of a run."""
        try:
            with _explained():
                state = self._hook.get_run_state(int(run))
        except ConfigurationError as error:
            if error.where.get("status") in (400, 404):
                return RunState(True, "Databricks does not know it any more")
            raise
        words = state.life_cycle_state, state.result_state, state.state_message
        return RunState(state.is_terminal, " ".join(filter(None, words)))

    def cancel(self, run: str) -> None:
        """End a run."""
        with _explained():
            self._hook.cancel_run(int(run))


@contextmanager
def _explained() -> Iterator[None]:
    """Turn errors of the provider into ours."""
    from airflow.providers.common.compat.sdk import AirflowException

    try:
        yield
    except (AirflowException, OSError) as error:  # requests' errors are of the second kind
        raise refused("databricks", first_line(error), getattr(error, "http_status_code", None)) from None


def open_platform(settings: SparkSettings) -> DatabricksPlatform:
    """Return the workspace of a connection of type ``databricks``.

    :raises ConfigurationError: the provider is not installed, or ``spark.run`` is not what can be completed.
    """
    try:
        from airflow.providers.databricks.hooks.databricks import DatabricksHook
    except ImportError:
        raise provider_missing("databricks", "apache-airflow-providers-databricks") from None
    tasks = settings.run.get("tasks")
    if not isinstance(tasks, list | tuple) or len(tasks) != 1 or not isinstance(tasks[0], Mapping):
        raise ConfigurationError(["spark.run.tasks: expected a list of one task, with what the job runs on"])
    taken = [f"spark.run.{name}" for name in _OURS if name in settings.run]
    taken += [f"spark.run.tasks[0].{name}" for name in _START if name in tasks[0]]
    if taken:
        raise ConfigurationError([f"{name}: is stated by the batch" for name in taken])
    if settings.conf and "new_cluster" not in tasks[0]:
        raise ConfigurationError(["spark.conf: only a new_cluster takes it"])
    connection = settings.connection or _DEFAULT_CONNECTION
    find_connection(connection, ("databricks",))
    return DatabricksPlatform(
        DatabricksHook(connection, timeout_seconds=_CALL_SECONDS, caller="airflow-provider-cdc"), settings.run
    )
