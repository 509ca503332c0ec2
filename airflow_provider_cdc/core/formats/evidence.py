# SPDX-License-Identifier: Apache-2.0
"""Define evidence of the tool that wrote a record, where several formats could read it.

A format that has lookalikes has a static method ``evidence(key, value, headers)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_cdc.core.formats.contract import Headers


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence that speaks for a format, or against it.

    :param options: of the format, with the values that records like this one are read with.
    """

    speaks_for: bool
    sentence: str
    options: tuple[tuple[str, str], ...] = ()


Find = Callable[[bytes | None, bytes, Headers], Evidence | None]


def fits(sentence: str, *options: tuple[str, str]) -> Evidence:
    """Return evidence for a format, with the options that it is to be opened with."""
    return Evidence(True, sentence, options)


def contradicts(sentence: str) -> Evidence:
    """Return evidence against a format."""
    return Evidence(False, sentence)
