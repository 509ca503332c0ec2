# SPDX-License-Identifier: Apache-2.0
"""Say how large the samples of the suite are: ``CDC_SEEDS=2`` takes twice as many seeds, and what else takes long."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("CDC_SEEDS", "1"))
ALL = TIMES > 1
"""Whether to run what the suite leaves out for time."""
