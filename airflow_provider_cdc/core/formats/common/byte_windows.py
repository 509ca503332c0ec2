# SPDX-License-Identifier: Apache-2.0
"""View bytes as overlapping windows of a fixed size."""

from __future__ import annotations

from typing import Any

import numpy as np

from airflow_provider_cdc.core.arrays import ByteArray


def windows(data: ByteArray, size: int) -> np.ndarray:
    """Return the window of ``size`` bytes that begins at each byte, without a copy."""
    windows: np.ndarray[Any, np.dtype[np.void]] = np.lib.stride_tricks.as_strided(
        data[:size].view(f"V{size}"), (len(data) - size + 1,), (1,)
    )
    return windows
