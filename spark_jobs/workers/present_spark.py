# SPDX-License-Identifier: Apache-2.0
"""Find out which Spark this process has already: started by it, given by a platform, or reached by a connection."""

from __future__ import annotations

import os
import sys
from typing import Any

_CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")  # a user sets the first, Spark itself the second
_SUBMITTED = "PYSPARK_GATEWAY_PORT"


def running_context() -> Any:
    """Return the context that runs in this process, None without one."""
    kind: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return None if kind is None else kind._active_spark_context


def is_connected() -> bool:
    """Return whether this process has Spark by a connection, without a context of its own."""
    return any(os.environ.get(name) for name in _CONNECT)


def is_submitted() -> bool:
    """Return whether spark-submit started this process."""
    return _SUBMITTED in os.environ
