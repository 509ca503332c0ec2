# SPDX-License-Identifier: Apache-2.0
"""The folder of a staged job on the lake: job, status and result."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from airflow_provider_cdc.core.documents.orders import Decision
from airflow_provider_cdc.core.documents.progress import Progress
from airflow_provider_cdc.core.documents.result import Result
from airflow_provider_cdc.core.documents.staged_job import StagedJob
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, SinkError
from airflow_provider_cdc.core.json_documents import json_bytes, json_data
from airflow_provider_cdc.core.lake.lake_files import LakeFiles

_JOB, _STATUS, _RESULT = "job.json", "status.json", "result.json"


class StagedPlace:
    """The documents of one staged job.

    :param address: path or URL of their folder.
    :param options: storage options in delta-rs' names, secrets included.
    """

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        self._files = LakeFiles(address, options)
        self._seen: Progress | None = None

    @property
    def address(self) -> str:
        """Return where the folder is, in the canonical spelling."""
        return self._files.root

    def stage(self, job: StagedJob) -> None:
        """Write the job, unless it is there.

        :raises ConfigurationError: it has values that stay out of the lake.
        """
        order = job.job.order
        if job.job.tables.keep_values_out and isinstance(order, Decision) and order.repaired:
            error = ConfigurationError(["values of repaired records would be in the lake, with the job"])
            error.hint = "run this batch on the worker: policy.engine inline, or Spark in client mode"
            raise error
        self._files.create(_JOB, json_bytes(job.document()))

    def job(self) -> StagedJob:
        """Return the job.

        :raises ConfigurationError: another version of this package made it.
        :raises SinkError: ``engine.no_job``, it is not there.
        """
        document = self._document(_JOB)
        if document is None:
            raise SinkError(
                "engine.no_job",
                "there is no job at this place",
                where={"place": self.address},
                hint="stage the request again: maintenance removes the jobs of old batches",
            )
        return StagedJob.from_document(document)

    def result(self) -> Result | None:
        """Return what came of the job, None where it has not ended."""
        document = self._document(_RESULT)
        return None if document is None else Result.from_document(document)

    def end(self, result: Result) -> None:
        """Write what came of the job."""
        self._files.write(_RESULT, json_bytes(result.document()))

    def status(self) -> dict[str, Any]:
        """Return what the running job last said of itself, nothing before it began."""
        return dict(self._document(_STATUS) or {})

    def news(self) -> Progress | None:
        """Return how far the running job is, once for each time it says so; None also where it cannot be asked now."""
        said = None
        with suppress(CdcError):
            said = self.status().get("progress")
        progress = None if said is None else Progress.from_document(said)
        before, self._seen = self._seen, progress
        return None if progress == before else progress

    def show(self, status: Mapping[str, Any]) -> None:
        """Write what the running job says of itself."""
        self._files.write(_STATUS, json_bytes(dict(status)))

    def _document(self, name: str) -> Any | None:
        content = self._files.read(name)
        try:
            return None if content is None else json_data(content)
        except ValueError:
            raise SinkError(
                "log.damaged",
                f"a document of the lake cannot be read ({len(content or b'')} bytes)",
                where={"path": f"{self.address}/{name}"},
                hint="stage the request again",
            ) from None
