# SPDX-License-Identifier: Apache-2.0
"""Run ``adopt``: this is the pipeline's lake now."""

from __future__ import annotations

from argparse import Namespace

from airflow_provider_cdc.commands.output import DONE, print_json
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.printable import printable


def adopt(args: Namespace) -> int:
    """Adopt the lake at the pipeline's root."""
    from airflow_provider_cdc.batch.adoption import adopt

    lake = adopt(CdcPipeline.from_yaml(args.pipeline))
    if args.json:
        print_json(lake.document())
    else:
        print(printable(f"the lake at {lake.root} is the one of pipeline {lake.pipeline} now (id {lake.id})"))
    return DONE
