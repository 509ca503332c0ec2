"""What operators and sensors take for a pipeline, and for a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError

PipelineLike = CdcPipeline | Mapping[str, Any] | str | Path


def as_pipeline(given: PipelineLike) -> CdcPipeline:
    """Return a pipeline from one, from plain data, or from the path of a YAML file.

    :raises ConfigurationError: with every problem at once.
    """
    if isinstance(given, CdcPipeline):
        return given
    return CdcPipeline.from_dict(given) if isinstance(given, Mapping) else CdcPipeline.from_yaml(given)


def as_instant(given: object) -> datetime | None:
    """Return a time from one or from ISO text; without a zone it is UTC, nothing and empty text mean None.

    :raises ConfigurationError: it is neither.
    """
    if isinstance(given, str):
        text = given.strip()
        if text in ("", "None"):
            return None
        try:
            given = datetime.fromisoformat(text)
        except ValueError:
            raise ConfigurationError([f"until: {text!r} is no ISO time"]) from None
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise ConfigurationError([f"until: expected a time or ISO text, got {type(given).__name__}"])
    return given if given.tzinfo else given.replace(tzinfo=UTC)
