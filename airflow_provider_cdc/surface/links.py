# SPDX-License-Identifier: Apache-2.0
"""Link tasks to the page of their pipeline and of their batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperatorLink

from airflow_provider_cdc.batch.arguments import as_pipeline
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.plugins.page_address import page_address

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import TaskInstanceKey


class CdcPipelineLink(BaseOperatorLink):
    """Open the page of the task's pipeline."""

    @property
    def name(self) -> str:
        """Text of the button."""
        return "CDC pipeline"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the address; empty where the pipeline is not valid."""
        try:
            return page_address(as_pipeline(operator.pipeline).name)
        except (CdcError, OSError):
            return ""


class CdcBatchLink(BaseOperatorLink):
    """Open the page of the task's pipeline at its batch."""

    @property
    def name(self) -> str:
        """Text of the button."""
        return "CDC batch"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the address; empty before the task has a batch."""
        seq = getattr(operator, "batch_seq", None)
        if seq is None:
            return ""
        try:
            return page_address(as_pipeline(operator.pipeline).name, seq)
        except (CdcError, OSError):
            return ""
