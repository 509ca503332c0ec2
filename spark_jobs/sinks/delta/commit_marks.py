# SPDX-License-Identifier: Apache-2.0
"""Write what a commit states of itself."""

from __future__ import annotations

from deltalake import CommitProperties, Transaction

from airflow_provider_cdc.core.json_documents import json_bytes
from spark_jobs.sinks.commits import MAINTENANCE, Commit

COMPACTION = {MAINTENANCE: "compaction"}
"""What our own compaction states of itself; no batch made it."""


def custom_metadata(commit: Commit) -> dict[str, str]:
    """Return what a commit states of itself next to Delta's own metadata."""
    return {"cdc": json_bytes(commit.facts).decode()}


def properties(commit: Commit) -> CommitProperties:
    """Return delta-rs' form of a commit's marks; concurrent writers are an error, not something to retry over."""
    return CommitProperties(
        custom_metadata=custom_metadata(commit),
        max_commit_retries=0,
        app_transactions=[Transaction(commit.app, commit.seq)],
    )
