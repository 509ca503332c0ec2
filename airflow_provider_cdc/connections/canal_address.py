# SPDX-License-Identifier: Apache-2.0
"""Address of a Canal server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CanalAddress:
    """Address of a Canal server, and who logs in.

    :param client_id: whose cursor is moved; the server allows one reader of it at a time.
    """

    host: str
    port: int = 11111
    login: str = ""
    password: str = field(default="", repr=False)
    client_id: int = 1001

    @property
    def where(self) -> dict[str, Any]:
        """Members of errors' ``where``."""
        return {"server": f"{self.host}:{self.port}"}
