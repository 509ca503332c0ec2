# SPDX-License-Identifier: Apache-2.0
"""Define the epoch times that messages may carry: up to the year 9999, the last one that a timestamp column holds."""

from __future__ import annotations

from typing import Annotated

import msgspec

MAX_SECONDS = 253_402_300_799
MAX_MILLIS = MAX_SECONDS * 1000 + 999
MAX_MICROS = MAX_MILLIS * 1000 + 999

# for fields of msgspec structs: a number outside of the range makes the message invalid
EpochSeconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_SECONDS)]
EpochMillis = Annotated[int, msgspec.Meta(ge=0, le=MAX_MILLIS)]
EpochMicros = Annotated[int, msgspec.Meta(ge=0, le=MAX_MICROS)]
