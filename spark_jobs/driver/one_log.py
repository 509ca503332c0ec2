# SPDX-License-Identifier: Apache-2.0
"""Refuse records of a second log: places in the logs of two servers have nothing in common."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.common.log_names import CONNECTORS, stated_names


def demand_one_log(job: JobDocument, read: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Refuse a batch with records of another log than the pipeline's, before anything of it is applied.

    :param read: names of the logs that records of the batch are of, with the first record of each.
    :param known: those of earlier batches.
    :raises DataError: ``source.second_log``.
    """
    stated = stated_names(job.format_options)
    mine = stated or known.keys() or set(sorted(read, key=lambda name: (read[name], name))[:1])
    others = sorted(read.keys() - mine)
    if not others:
        return
    first = others[0]
    raise DataError(
        "source.second_log",
        f"records of the connector {first!r} come among those of {', '.join(map(repr, sorted(mine)))}: places in the "
        "logs of two servers do not order each other's rows; nothing of this batch was applied",
        where={"record": read[first], "source.name": " ".join(others)},
        hint="let source.topics match the topics of one connector only, and give the other a pipeline with a name and "
        "a sink.root of its own; if one connector took the place of the other and reads the same server's log, state "
        f"both in source.options.{CONNECTORS}",
    )
