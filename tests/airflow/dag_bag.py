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
    bag = DagBag(folder)
    if hasattr(bag, "sync_to_db"):  # there a task's run is refused whose assets are not known yet
        from airflow.dag_processing.bundles.manager import DagBundlesManager

        bundles = DagBundlesManager()
        bundles.sync_bundles_to_db()
        name = next(bundle.name for bundle in bundles.get_all_dag_bundles() if str(bundle.path) == folder)
        bag.sync_to_db(name, None)
    return bag
