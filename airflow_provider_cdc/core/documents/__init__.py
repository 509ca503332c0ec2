# SPDX-License-Identifier: Apache-2.0
"""The plain documents in which the two sides meet: job in, result out, table states between batches."""

from __future__ import annotations

from airflow_provider_cdc.core.documents.hadoop_credentials import CREDENTIALS_VARIABLE, credentials_file
from airflow_provider_cdc.core.documents.job import ALLOW_UNENCRYPTED, DOCUMENT_VERSION, SECRETS_VARIABLE, JobDocument
from airflow_provider_cdc.core.documents.orders import (
    Adoption,
    Approval,
    BatchOrder,
    Decision,
    DecisionAction,
    Look,
    Maintenance,
    Order,
    Probe,
    Rebuild,
    RebuildSource,
    Replay,
)
from airflow_provider_cdc.core.documents.progress import TABLE_ROWS, Progress
from airflow_provider_cdc.core.documents.proof import Proof
from airflow_provider_cdc.core.documents.result import (
    Difference,
    ExpiredLog,
    ProbeStep,
    QuarantineEntry,
    Result,
    TableLine,
    TableMaintenance,
)
from airflow_provider_cdc.core.documents.staged_job import (
    CREDENTIALS_NAME,
    SECRETS_FILE_VARIABLE,
    StagedJob,
    secret_names,
    take_secrets,
)
from airflow_provider_cdc.core.documents.staged_place import StagedPlace
from airflow_provider_cdc.core.documents.table_state import TableState

__all__ = [
    "ALLOW_UNENCRYPTED",
    "CREDENTIALS_NAME",
    "CREDENTIALS_VARIABLE",
    "DOCUMENT_VERSION",
    "SECRETS_FILE_VARIABLE",
    "SECRETS_VARIABLE",
    "TABLE_ROWS",
    "Adoption",
    "Approval",
    "BatchOrder",
    "Decision",
    "DecisionAction",
    "Difference",
    "ExpiredLog",
    "JobDocument",
    "Look",
    "Maintenance",
    "Order",
    "Probe",
    "ProbeStep",
    "Progress",
    "Proof",
    "QuarantineEntry",
    "Rebuild",
    "RebuildSource",
    "Replay",
    "Result",
    "StagedJob",
    "StagedPlace",
    "TableLine",
    "TableMaintenance",
    "TableState",
    "credentials_file",
    "secret_names",
    "take_secrets",
]
