# SPDX-License-Identifier: Apache-2.0
"""Run batches as SparkApplications of Kubeflow's operator on Kubernetes, through Airflow's provider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_provider_cdc.connections.lookup import find_connection
from airflow_provider_cdc.core.config import SparkSettings
from airflow_provider_cdc.core.errors import ConfigurationError, first_line
from airflow_provider_cdc.platforms.contract import RunState, Submission, provider_missing, refused

_DEFAULT_CONNECTION = "kubernetes_default"
_KIND = {"group": "sparkoperator.k8s.io", "version": "v1beta2", "plural": "sparkapplications"}
_ENDED = ("COMPLETED", "FAILED")
_CALL_SECONDS = 30
_OURS = ("arguments", "mainApplicationFile")
_MISSING, _THERE = 404, 409


class KubernetesPlatform:
    """SparkApplications of one namespace; the token of a run is the object's name.

    :param api: the cluster's ``CustomObjectsApi``.
    :param document: a SparkApplication, without what starts the job.
    """

    def __init__(self, api: Any, namespace: str, document: Mapping[str, Any]) -> None:
        self._api, self._document = api, document
        self._of = {**_KIND, "namespace": namespace, "_request_timeout": _CALL_SECONDS}

    def submit(self, job: Submission) -> str:
        """Create the object of a token, unless it is there."""
        spec, metadata = self._document["spec"], self._document.get("metadata", {})
        deps = spec.get("deps", {})
        body = {
            "apiVersion": f"{_KIND['group']}/{_KIND['version']}",
            "kind": "SparkApplication",
            "metadata": {**metadata, "name": job.token, "namespace": self._of["namespace"]},
            "spec": {
                "type": "Python",
                "mode": "cluster",
                "restartPolicy": {"type": "Never"},
                **spec,
                "mainApplicationFile": job.main,
                "arguments": list(job.arguments),
                "deps": {**deps, "pyFiles": [*deps.get("pyFiles", []), job.payload]},
                "sparkConf": {**job.conf, **spec.get("sparkConf", {})},
            },
        }
        with _explained(but=_THERE):
            self._api.create_namespaced_custom_object(body=body, **self._of)
        return job.token

    def state(self, run: str) -> RunState:
        """Return the state of an object; one that is deleted ends with its driver."""
        application: Any = None
        with _explained(but=_MISSING):
            application = self._api.get_namespaced_custom_object(name=run, **self._of)
        if application is None:
            return RunState(True, "deleted")
        if application["metadata"].get("deletionTimestamp"):
            return RunState(False, "being deleted")
        shown = application.get("status", {}).get("applicationState", {})
        words = shown.get("state") or "NEW", shown.get("errorMessage")
        return RunState(words[0] in _ENDED, " ".join(filter(None, words)))

    def cancel(self, run: str) -> None:
        """Delete an object; it is there until its driver is gone, so that no other one takes its names before."""
        with _explained(but=_MISSING):
            self._api.delete_namespaced_custom_object(name=run, propagation_policy="Foreground", **self._of)


@contextmanager
def _explained(but: int = 0) -> Iterator[None]:
    """Turn errors of the client into ours.

    :param but: status that is as good as success.
    """
    from kubernetes.client.exceptions import OpenApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (OpenApiException, HTTPError) as error:  # the second kind is of a server that does not answer
        status = getattr(error, "status", None) or None
        if status != but:
            raise refused("kubernetes", _words(error), status) from None


def _words(error: Exception) -> str:
    """Return what the cluster says of a request, or what kept it from an answer."""
    try:
        return str(json.loads(getattr(error, "body", ""))["message"])
    except (ValueError, TypeError, KeyError):
        return first_line(error)


def open_platform(settings: SparkSettings) -> KubernetesPlatform:
    """Return the namespace that ``spark.run`` or a connection of type ``kubernetes`` names.

    :raises ConfigurationError: the provider is not installed, or ``spark.run`` is not what can be completed.
    """
    try:
        from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
    except ImportError:
        raise provider_missing("kubernetes", "apache-airflow-providers-cncf-kubernetes") from None
    spec, metadata = settings.run.get("spec"), settings.run.get("metadata", {})
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping):
        raise ConfigurationError(["spark.run.spec: expected that of a SparkApplication, with image, driver, executor"])
    taken = [f"spark.run.spec.{name}" for name in _OURS if name in spec]
    taken += ["spark.run.metadata.name"] if "name" in metadata else []
    if taken:
        raise ConfigurationError([f"{name}: is stated by the batch" for name in taken])
    connection = settings.connection or _DEFAULT_CONNECTION
    find_connection(connection, ("kubernetes",))
    hook = KubernetesHook(conn_id=connection)
    namespace = metadata.get("namespace") or hook.get_namespace() or "default"
    try:
        api = hook.custom_object_client
    except Exception as error:  # its text may quote the connection
        text = f"connection {connection!r} gives no client of Kubernetes ({type(error).__name__})"
        raise ConfigurationError([text], where={"connection": connection}) from None
    return KubernetesPlatform(api, str(namespace), settings.run)
