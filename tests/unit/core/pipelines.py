# SPDX-License-Identifier: Apache-2.0
"""Make pipelines, and name what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError


def minimal(**changes: Any) -> dict[str, Any]:
    """Return the smallest pipeline, as plain data."""
    return {
        "name": "shop",
        "source": {"topics": "t", "format": "debezium-json"},
        "sink": {"root": "/data/lake"},
        **changes,
    }


def problems_of(data: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        CdcPipeline.from_dict(data)
    return refused.value.problems


# ---- reading
