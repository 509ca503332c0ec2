# SPDX-License-Identifier: Apache-2.0
"""Remove a table that a probe made: from the catalog, with its namespaces and files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError

from airflow_provider_cdc.core.config.sinks.iceberg_options import store_options_of
from airflow_provider_cdc.core.lake.roots import canonical_root
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.iceberg.catalogs import reaching
from spark_jobs.sinks.iceberg.table import IcebergTable


def remove(target: IcebergTable) -> None:
    """Remove what the commits to a table made (``Sink.remove``).

    :param target: as it was opened before the first of them: it knows which namespaces were made.
    """
    now = target.newest()
    folder, properties = target.folder, target.catalog.properties
    with reaching(target.where):
        if now.exists:
            folder, properties = now.table.location(), now.table.io.properties
            target.catalog.drop_table(target.identifier)
        for namespace in reversed(target.made):
            with suppress(NamespaceNotEmptyError, NoSuchNamespaceError):
                target.catalog.drop_namespace(namespace)
    if folder:
        _delete_files(folder, target.identifier[-2], properties)


def _delete_files(folder: str, database: str, properties: Mapping[str, str]) -> None:
    """Remove a table's folder, and the one of its namespace: that one has it alone, where it has its name."""
    above, _, name = canonical_root(folder).rpartition("/")
    root, _, last = above.rpartition("/")
    path = (root, f"{last}/{name}") if last == database else (above, name)
    Storage(path[0], store_options_of(properties)).delete_folder(path[1], traces=True)
