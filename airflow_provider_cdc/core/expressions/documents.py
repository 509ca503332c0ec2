# SPDX-License-Identifier: Apache-2.0
"""Kernel of JSON_VALUE: one value of a JSON document, as text."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.expressions.rows import Rows

_PATH = re.compile(r'\$(?:\.(?:[^\W\d]\w*|"[^"\\]+")|\[(?:0|[1-9]\d{0,8})\])*')
_STEP = re.compile(r'\.(?:(\w+)|"([^"]+)")|\[(\d+)\]')


class _NotScalar(ValueError):
    """An object or a list, which has no text of its own."""


def json_path(text: str) -> list[str | int]:
    """Return the steps of a path such as ``$.items[0].price``.

    :raises ValueError: it is none.
    """
    if not _PATH.fullmatch(text):
        raise ValueError('a path is $ and then .name, ."name" or [number]')
    return [int(number) if number else name or quoted for name, quoted, number in _STEP.findall(text)]


def json_value(documents: pa.Array, path: str) -> Rows:
    """Return a text, a number as it is written, true or false; NULL for null and for what is not there.

    A row fails if its text is not a JSON document, and if the value is an object or a list.
    """
    steps = json_path(path)
    failed = np.zeros(len(documents), bool)
    values: list[str | None] = []
    for row, document in enumerate(documents.to_pylist()):
        value = None
        try:
            value = None if document is None else _text(_value_at(_DECODER.decode(document), steps))
        except (ValueError, RecursionError):
            failed[row] = True
        values.append(value)
    return Rows(pa.array(values, pa.string()), failed if failed.any() else None)


def _value_at(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def _text(value: Any) -> str | None:
    if isinstance(value, dict | list):
        raise _NotScalar
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return None
    text = str(value)
    text.encode()  # a lone surrogate has no text
    return text


def _refused(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refused)
