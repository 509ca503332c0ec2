# SPDX-License-Identifier: Apache-2.0
"""Keep the schemas that records name in the lake: each is asked for once, and a replay needs no registry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
from airflow_provider_cdc.core.schema_registry.client import ask
from airflow_provider_cdc.core.schema_registry.kept_schemas import is_schema, schema_file
from spark_jobs.lake.scratch import lake_of
from spark_jobs.lake.storage import Storage

_AT_ONCE = 8


def schema_supply(job: JobDocument, secrets: dict[str, dict[str, str]]) -> SchemaSupply:
    """Return what teaches a format the schemas of a job's registry."""
    return SchemaSupply(
        LakeSchemas(job.pipeline, lake_of(job, secrets), {**job.registry, **secrets.get("registry", {})})
    )


class LakeSchemas:
    """Schemas of one registry, read from the lake first; those that it lacks are asked for and kept.

    :param registry: settings of the registry's client; empty where the pipeline names none.
    """

    def __init__(self, pipeline: str, storage: Storage, registry: Mapping[str, str]) -> None:
        self._pipeline, self._storage, self._registry = pipeline, storage, dict(registry)

    def __call__(self, ids: Collection[int]) -> Mapping[int, Mapping[str, Any] | None]:
        """Return schemas by id, None for an id that the registry does not have: nothing is kept of it.

        :raises UnavailableError: the registry or the lake does not answer.
        :raises ConfigurationError: no registry is stated, or it refuses the login.
        """
        if not self._registry:
            return ask(self._registry, ids)
        with ThreadPoolExecutor(min(_AT_ONCE, len(ids) or 1)) as threads:
            stored = dict(zip(ids, threads.map(self._stored, ids), strict=True))
            lacking = [identity for identity, schema in stored.items() if schema is None]
            answers = ask(self._registry, lacking) if lacking else {}
            list(threads.map(self._store, [item for item in answers.items() if item[1] is not None]))
        return {**stored, **answers}

    def _file(self, identity: int) -> str:
        return schema_file(self._pipeline, self._registry["url"], identity)

    def _stored(self, identity: int) -> dict[str, Any] | None:
        """Return a schema of the lake, None where it has none that can be read: then it is asked for again."""
        try:
            document = self._storage.read_json(self._file(identity))
        except SinkError:
            return None
        return document if is_schema(document) else None

    def _store(self, item: tuple[int, Mapping[str, Any]]) -> None:
        identity, answer = item
        # waiting for the disk takes six times as long, and one that a power loss damages is asked for again
        self._storage.write_json(self._file(identity), {"id": identity, **answer}, durable=False)
