# SPDX-License-Identifier: Apache-2.0
"""Link tasks to the page of their pipeline and of their batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from airflow.providers.common.compat.sdk import BaseOperatorLink, conf

from airflow_provider_cdc.batch.arguments import as_pipeline
from airflow_provider_cdc.core.errors import CdcError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import TaskInstanceKey


def page_address(pipeline: str, seq: int | None = None) -> str:
    """Return the address of a pipeline's page, relative to the host; empty where the page is switched off.

    :param seq: number of the batch to begin with.
    """
    if not conf.getboolean("cdc", "page_enabled", fallback=True):
        return ""
    folder = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
    parameters = {"pipeline": pipeline} | ({} if seq is None else {"seq": str(seq)})
    return f"{folder}/plugin/cdc?{urlencode(parameters)}"


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
