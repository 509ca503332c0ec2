# SPDX-License-Identifier: Apache-2.0
"""Write the job of a batch to the lake, with the code that it needs, for a platform that runs it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc import __version__
from airflow_provider_cdc.connections.lookup import storage_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import JobDocument, StagedJob, StagedPlace, secret_names
from airflow_provider_cdc.core.json_documents import json_bytes
from airflow_provider_cdc.core.lake.lake_files import LakeFiles
from airflow_provider_cdc.engine.payload import payload
from airflow_provider_cdc.engine.task import PROCESS_SETTINGS, conf_text
from airflow_provider_cdc.platforms.contract import Submission

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.planned_batch import PlannedBatch
    from airflow_provider_cdc.ledger import Batch

_TOKEN_NAME = 24  # characters of the pipeline's name: platforms take tokens and names of up to 63


@dataclass(frozen=True)
class JobOnLake:
    """A job that lies on the lake.

    :param secrets: names of the secrets that it needs.
    """

    folder: StagedPlace
    submission: Submission
    secrets: list[str]

    def outputs(self) -> dict[str, Any]:
        """Return as plain data what a platform's operator needs."""
        return {"job": self.folder.address, **asdict(self.submission), "secrets": self.secrets}


def staged_job(pipeline: CdcPipeline, run: PlannedBatch, batch: Batch) -> JobOnLake:
    """Write a batch's job to the lake: the same for the same request, until it ended with an error."""
    run.documents.staged = True
    job, secrets = run.documents.make()
    options = {**job.storage, **secrets["storage"]}
    files, home = LakeFiles(job.lake_root, options), f"_cdc/{pipeline.name}"
    run.demand_same_lake(files.read(f"{home}/lake.json"))
    staged = StagedJob(__version__, secret_names(secrets), job)
    digest = hashlib.sha256(json_bytes(staged.document())).hexdigest()[:16]
    for attempt in count(1):
        there = StagedPlace(f"{files.root}/{home}/jobs/{batch.seq}/{job.ledger}-{digest}-{attempt}", options)
        before = there.result()
        if before is None or before.is_final:
            break
    there.stage(staged)
    arguments = [there.address, *(part for item in job.storage.items() for part in ("--store", "=".join(item)))]
    submission = Submission(_token(job, digest, attempt), arguments, *_code(files, home), _conf(pipeline))
    return JobOnLake(there, submission, staged.secrets)


def place_of(pipeline: CdcPipeline, address: str) -> StagedPlace:
    """Return the folder of a job that was staged."""
    lake = pipeline.lake
    return StagedPlace(address, {**storage_options(lake.storage_connection), **lake.storage_options})


def _token(job: JobDocument, digest: str, attempt: int) -> str:
    """Return a name of the attempt that every platform takes: of a run, or as a token that makes a request unique."""
    name = re.sub(r"[^a-z0-9]+", "-", job.pipeline.lower()).strip("-")[:_TOKEN_NAME].strip("-")
    return f"cdc-{name or 'pipeline'}-{job.seq}-{digest[:12]}-{attempt}"


def _code(files: LakeFiles, home: str) -> tuple[str, str]:
    """Write the code to the lake where it is not there yet; return the addresses of its main file and of its zip."""
    code = payload()
    folder = f"{home}/code/{code.archive.parent.name}"
    main, archive = f"{folder}/{code.main.name}", f"{folder}/{code.archive.name}"
    if files.read(main) is None:
        files.create(archive, code.archive.read_bytes())
        files.create(main, code.main.read_bytes())
    return f"{files.root}/{main}", f"{files.root}/{archive}"


def _conf(pipeline: CdcPipeline) -> dict[str, str]:
    """Return Spark's properties as all platforms take them: texts."""
    stated = {key: conf_text(value) for key, value in pipeline.spark.conf.items()}
    return {**{f"spark.executorEnv.{name}": value for name, value in PROCESS_SETTINGS.items()}, **stated}
