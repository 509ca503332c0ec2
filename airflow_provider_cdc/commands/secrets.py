# SPDX-License-Identifier: Apache-2.0
"""Run ``secrets``: write what jobs on other platforms need to a file, for the platform's own store of secrets."""

from __future__ import annotations

import json
import os
from argparse import Namespace

from airflow_provider_cdc.commands.output import DONE
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError


def secrets(args: Namespace) -> int:
    """Write a pipeline's secrets to a new file that only this user reads; print their names."""
    from airflow_provider_cdc.batch.job import job_settings
    from airflow_provider_cdc.batch.source_log import open_log
    from airflow_provider_cdc.core.documents import secret_names

    pipeline = CdcPipeline.from_yaml(args.pipeline)
    settings = job_settings(pipeline, open_log(pipeline).client_config())
    document = {kind: secret for kind, (_, secret) in settings.items() if secret}
    try:
        descriptor = os.open(args.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigurationError([f"{args.file}: {error.strerror}"]) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file)
    print("\n".join(secret_names(document)))
    return DONE
