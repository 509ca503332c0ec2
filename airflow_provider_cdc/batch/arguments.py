# SPDX-License-Identifier: Apache-2.0
"""Convert the arguments of operators and sensors to a pipeline and a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import CdcPipeline

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

PipelineLike: TypeAlias = "CdcPipeline | Mapping[str, Any] | str | Path"  # a text: DAGs are parsed without its module


def as_pipeline(pipeline: PipelineLike) -> CdcPipeline:
    """Return the pipeline of a ``CdcPipeline``, of plain data, or of the path of a YAML file.

    :raises ConfigurationError: names all problems at once.
    """
    from airflow_provider_cdc.core.config import CdcPipeline

    if isinstance(pipeline, CdcPipeline):
        return pipeline
    if isinstance(pipeline, str) and "\n" not in pipeline:
        refuse_template("pipeline", pipeline)
    return CdcPipeline.from_dict(pipeline) if isinstance(pipeline, Mapping) else CdcPipeline.from_yaml(pipeline)


def file_of(pipeline: PipelineLike, name: str) -> str:
    """Return the path of a pipeline's file, or one that has its name."""
    text = str(pipeline) if isinstance(pipeline, str | Path) else "\n"
    return f"{name}.yaml" if "\n" in text else text


def refuse_template(name: str, value: str) -> None:
    """Raise for a template that was not rendered.

    :raises ConfigurationError: names the argument.
    """
    if "{{" in value or "{%" in value:
        raise ConfigurationError([f"{name}: {value.strip()!r} is a template that was not rendered"])


def parse_instant(text: str) -> datetime | None:
    """Return the time of an ISO text; without a zone it is UTC, an empty text means None.

    :raises ValueError: it is not an ISO time.
    """
    if not text.strip():
        return None
    instant = datetime.fromisoformat(text.strip())
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def as_instant(value: object, name: str = "until") -> datetime | None:
    """Return the time of a datetime or an ISO text, UTC without a zone; None and empty text give None.

    :param name: of the argument, for messages.
    :raises ConfigurationError: it is neither.
    """
    if isinstance(value, str):
        refuse_template(name, value)
        try:
            return None if value.strip() == "None" else parse_instant(value)
        except ValueError:
            raise ConfigurationError([f"{name}: {value.strip()!r} is not an ISO time"]) from None
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise ConfigurationError([f"{name}: expected a time or ISO text, got {type(value).__name__}"])
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def as_micros(instant: datetime | None) -> int | None:
    """Return a time in microseconds since the epoch, None for None."""
    return None if instant is None else (instant - _EPOCH) // timedelta(microseconds=1)
