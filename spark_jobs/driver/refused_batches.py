# SPDX-License-Identifier: Apache-2.0
"""Refuse a batch whose records could not be decoded, and land it again once the format is corrected."""

from __future__ import annotations

import hashlib
import json

from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.driver.quarantine import Quarantine
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.manifest import Manifest

_REFUSED, _BEGUN = "refused", "begun"


def decoding_of(job: JobDocument) -> str:
    """Return a digest of what decides how a job's records are decoded."""
    deciding = [job.format, sorted(job.format_options.items()), job.schema_topic]
    return hashlib.blake2b(json.dumps(deciding).encode(), digest_size=8).hexdigest()


def is_outdated(job: JobDocument, landed: Manifest) -> bool:
    """Return whether a batch is to be landed again: it was refused, and its records are decoded otherwise now."""
    return landed.course == _REFUSED and landed.landed_with != decoding_of(job)


def refuse(job: JobDocument, landed: Manifest, log: BatchLog) -> None:
    """Note that nothing of a batch was applied, so that it is landed again where its records are decoded otherwise."""
    if not landed.course:
        landed.course = _REFUSED
        log.replace_manifest(job, landed)


def demand_known(job: JobDocument, landed: Manifest, quarantine: Quarantine, log: BatchLog) -> None:
    """Refuse a batch while too many records of unknown tables wait.

    The manifest says so until the batch begins to be applied: from then on the batch is never landed again.

    :raises DataError: ``land.quarantine_exceeded``.
    """
    error = quarantine.unknown()
    course = _BEGUN if error is None else _REFUSED
    unsure = landed.course == _REFUSED or any(not item.table for item in landed.unreadable)
    if unsure and landed.course not in (_BEGUN, course):
        landed.course = course
        log.replace_manifest(job, landed)
    if error is not None:
        raise error
