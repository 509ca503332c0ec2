# SPDX-License-Identifier: Apache-2.0
"""Remember with which rules of ``target`` attempts at a batch were made: each may have written tables."""

from __future__ import annotations

from airflow_provider_cdc.core.config import TargetRule
from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.manifest import Manifest


def rules_of(job: JobDocument) -> list[dict[str, str]]:
    """Return the documents of a job's rules."""
    return [rule.document() for rule in job.target]


def note_rules(job: JobDocument, landed: Manifest, log: BatchLog) -> None:
    """Note a job's rules in the manifest before anything is written with them; a batch lands with those of then."""
    tried = landed.target_rules or [[]]
    if rules_of(job) not in tried:
        landed.target_rules = [*tried, rules_of(job)]
        log.replace_manifest(job, landed)


def tried_before(job: JobDocument, landed: Manifest) -> list[list[TargetRule]]:
    """Return the other rules with which attempts at a batch may have written tables, the newest first."""
    others = [rules for rules in reversed(landed.target_rules or [[]]) if rules != rules_of(job)]
    return [[TargetRule.from_document(rule) for rule in rules] for rules in others]
