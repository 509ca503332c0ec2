# SPDX-License-Identifier: Apache-2.0
"""Spell names of packages in one way."""

from __future__ import annotations

import re


def normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
