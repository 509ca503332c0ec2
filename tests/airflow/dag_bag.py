# SPDX-License-Identifier: Apache-2.0
"""Load folders of DAGs into a metadata database of its own, in any release of Airflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def make_database() -> None:
    """Make the metadata database."""
    Path(os.environ["AIRFLOW_HOME"]).mkdir(parents=True, exist_ok=True)  # older ones do not
    from airflow.utils.db import initdb

    initdb()


def bag_of(folder: str) -> Any:
    """Return the DAGs of a folder."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # Airflow before 3.2
        from airflow.models.dagbag import DagBag
    return DagBag(folder)
