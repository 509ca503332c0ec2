# SPDX-License-Identifier: Apache-2.0
"""Run ``decode``: print the changes of recorded records, one JSON line each."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial

from airflow_provider_cdc.batch.recorded_changes import changes
from airflow_provider_cdc.batch.stated_schemas import stated_schemas
from airflow_provider_cdc.commands.output import CONFIGURATION, DONE, complain, json_line
from airflow_provider_cdc.core.file_log.record_lines import lines, opened


def decode(args: Namespace) -> int:
    """Print the changes of the records in files."""
    from airflow_provider_cdc.core.formats.registry import open_format

    reopen = partial(open_format, args.format, dict(args.option))
    reopen()  # reject an unknown format or option before any file is read
    schemas = stated_schemas(args.schemas)
    code = DONE
    for file in args.files:
        try:
            with opened(file) as stream:
                for change in changes(reopen, lines(stream), schemas):
                    print(json_line(change))
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"cannot read {file}: {error.strerror or error}")
            code = CONFIGURATION
    sys.stdout.flush()
    return code
