"""Errors across Spark: a task's own error comes back as an answer, keeps its type and is not tried four times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from airflow_provider_cdc.core.errors import CdcError


def _caught(function: Callable[[Any], Any], item: Any) -> tuple[bool, Any]:
    try:
        return True, function(item)
    except CdcError as error:
        return False, error


def carried(function: Callable[[Any], Any]) -> Callable[[Any], tuple[bool, Any]]:
    """Return the function with its CdcError turned into an answer."""
    return partial(_caught, function)


def raised(answer: tuple[bool, Any]) -> Any:
    """Return the answer, or raise the error it carries."""
    good, value = answer
    if not good:
        raise value
    return value
