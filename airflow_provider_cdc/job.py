# SPDX-License-Identifier: Apache-2.0
"""Run a staged job where this package is installed: ``python -m airflow_provider_cdc.job PLACE``; needs no Airflow."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

from airflow_provider_cdc.engine.here import reach_spark_jobs
from airflow_provider_cdc.engine.payload import payload


def program() -> None:
    """Run the job of the command line and end the process: 0 where it has a result, 75 where it may be run again."""
    reach_spark_jobs()
    launcher: Any = importlib.import_module("spark_jobs.launch.run")
    code = ["--payload", str(payload().archive)] if find_spec("pyspark") else []
    launcher.end(launcher.main([*sys.argv[1:], *code]))


if __name__ == "__main__":
    program()
