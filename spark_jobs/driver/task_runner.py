# SPDX-License-Identifier: Apache-2.0
"""Type what a batch hands its tasks to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Secrets = dict[str, dict[str, str]]
# runs a function over documents somewhere, in any order, and returns the answers in the order of the documents
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
