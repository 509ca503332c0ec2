# SPDX-License-Identifier: Apache-2.0
"""Read the schemas that batches kept in the lake: who has them needs no registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.lake.lake_files import LakeFiles
from airflow_provider_cdc.core.schema_registry.client import ask, registry_digest

_AT_ONCE = 8


def schema_file(pipeline: str, url: str, identity: int) -> str:
    """Return the file of a schema that records name, relative to the lake's root.

    :param url: of the registry: an id means something in one registry only.
    """
    return f"_cdc/{pipeline}/schemas/{registry_digest(url)}/{identity}.json"


def is_schema(document: Any) -> bool:
    """Return whether a document is a schema as the registry answers it."""
    return isinstance(document, dict) and isinstance(document.get("schema"), str)


def kept_or_asked(
    pipeline: str, root: str, options: Callable[[], dict[str, str]], settings: Mapping[str, str], ids: Collection[int]
) -> dict[int, Mapping[str, Any] | None]:
    """Return schemas by id, of the lake where it has them and of the registry else; nothing is kept.

    :param root: path or URL of the lake.
    :param options: returns its storage options in delta-rs' names.
    :param settings: of the registry's client; empty where the pipeline names none.
    :raises UnavailableError: the registry does not answer, and the lake lacks a schema.
    :raises ConfigurationError: no registry is stated, or it refuses the login.
    """
    if not settings:
        return dict(ask(settings, ids))
    files = {identity: schema_file(pipeline, settings["url"], identity) for identity in ids}
    stored = _stored(root, options(), files)
    lacking = [identity for identity in ids if identity not in stored]
    return {**stored, **(ask(settings, lacking) if lacking else {})}


def _stored(root: str, options: dict[str, str], files: Mapping[int, str]) -> dict[int, Mapping[str, Any]]:
    """Return the schemas that the lake has; none of a store that does not answer."""
    lake = LakeFiles(root, options)

    def document(file: str) -> Any:
        try:
            return json.loads(lake.read(file) or b"null")
        except (UnavailableError, ValueError):
            return None

    with ThreadPoolExecutor(min(_AT_ONCE, len(files) or 1)) as threads:
        documents = zip(files, threads.map(document, files.values()), strict=True)
        return {identity: one for identity, one in documents if is_schema(one)}
