"""Command line: ``airflow-cdc`` and, with the same verbs, ``airflow cdc``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="airflow-cdc")
    verbs = parser.add_subparsers(dest="verb", required=True)
    sync = verbs.add_parser("sync")
    sync.add_argument("pipeline")
    sync.add_argument("--until", type=_instant)
    sync.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    from airflow_provider_cdc.batch import run_batch
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.errors import CdcError, Transient

    try:
        result = run_batch(CdcPipeline.from_yaml(given.pipeline), until=given.until, say=_say)
    except CdcError as error:
        print(error, file=sys.stderr)
        return 5 if isinstance(error, Transient) else 2
    print(json.dumps(result, indent=None if given.json else 2))
    return {"done": 0, "nothing_to_do": 0, "parked": 3, "failed": 3}[result["status"]]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


if __name__ == "__main__":
    sys.exit(main())
