# SPDX-License-Identifier: Apache-2.0
"""Read ``policy.verify``: how far changes are compared with the rows that they find."""

from __future__ import annotations

import re

from airflow_provider_cdc.core.config.checks import Checks

LEVELS = ("off", "touched", "all")
_SAMPLE = re.compile(r"sample\((0?\.\d+|1(?:\.0*)?)\)")


def sampled_share(verify: str) -> float | None:
    """Return the share of ``sample(<share>)``, None where it is something else.

    :param verify: as the pipeline states it.
    """
    stated = _SAMPLE.fullmatch(verify.replace(" ", ""))
    return float(stated[1]) or None if stated else None


def check_verify(checks: Checks, value: object) -> None:
    """Note the problem of a value that cannot be ``policy.verify``."""
    if not isinstance(value, str) or (value not in LEVELS and sampled_share(value) is None):
        checks.problem("verify", f"expected one of {', '.join(LEVELS)}, sample(0.1), got {value!r}")
