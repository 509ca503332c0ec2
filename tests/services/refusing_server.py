# SPDX-License-Identifier: Apache-2.0
"""A proxy before a catalog or an object store that refuses what the login may not do."""

from __future__ import annotations

import re

from tests.faults.store import FailingStore


class RefusingServer(FailingStore):
    """Passes each request on, but those that it refuses.

    :param body: of a refusal, as the server behind it writes it.
    :ivar refused: first lines of the requests that it refused.
    """

    def __init__(self, endpoint: str, body: str = "") -> None:
        self._body = body
        self._pattern, self._status, self._passing = re.compile("(?!)"), "", 0
        self.refused: list[str] = []
        super().__init__(endpoint)

    def refuse(self, pattern: str, status: str = "403 Forbidden", *, behind: int = 0) -> None:
        """Refuse requests whose first line begins with a pattern.

        :param behind: how many of them still pass.
        """
        self._pattern, self._status, self._passing = re.compile(pattern), status, behind

    def refusal(self, request: str) -> str:
        """Return the answer to a request that is refused."""
        if not self._pattern.match(request):
            return ""
        self._passing -= 1
        if self._passing >= 0:
            return ""
        self.refused.append(request)
        return f"HTTP/1.1 {self._status}\r\nContent-Length: {len(self._body)}\r\nConnection: close\r\n\r\n{self._body}"
