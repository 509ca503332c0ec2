# SPDX-License-Identifier: Apache-2.0
"""Name what a short log refuses."""

from __future__ import annotations

REFUSED = "retention.log_expired"
