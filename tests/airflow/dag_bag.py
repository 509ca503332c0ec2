# SPDX-License-Identifier: Apache-2.0
"""Load a folder of DAGs into a metadata database of its own, in any release of Airflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def loaded(folder: str) -> Any:
    """Make the metadata database, and return the DAGs of a folder."""
    Path(os.environ["AIRFLOW_HOME"]).mkdir(parents=True, exist_ok=True)  # older ones do not
    from airflow.utils.db import initdb

    initdb()
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow before 3.2
        from airflow.models.dagbag import DagBag
    return DagBag(folder)
