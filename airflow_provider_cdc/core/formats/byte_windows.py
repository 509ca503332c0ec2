"""Bytes seen as stretches of several, at any place."""

from __future__ import annotations

from typing import Any

import numpy as np


def windows(data: np.ndarray[Any, np.dtype[np.uint8]], size: int) -> np.ndarray:
    """Return the stretches of so many bytes that begin at each byte, without a copy."""
    windows: np.ndarray[Any, np.dtype[np.void]] = np.lib.stride_tricks.as_strided(
        data[:size].view(f"V{size}"), (len(data) - size + 1,), (1,)
    )
    return windows
