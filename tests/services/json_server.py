# SPDX-License-Identifier: Apache-2.0
"""A server that takes and gives JSON documents, for stand-ins of services' APIs."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, dict[str, Any]]


class JsonServer(ABC):
    """A server that is ready when the constructor returns.

    It keeps the documents that it was sent. What ``answers`` has comes in place of its own answers.
    """

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []
        self.answers: list[Answer] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @abstractmethod
    def answer(self, method: str, path: str, document: dict[str, Any], login: str) -> Answer | None:
        """Return status and document of the answer, None for one that is lost.

        document: of the request, or the parameters of its address.
        login: the header ``Authorization``.
        """

    def stop(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


def _handler(server: JsonServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            address, size = urlsplit(self.path), int(self.headers["Content-Length"] or 0)
            document = json.loads(self.rfile.read(size)) if size else None
            if document is None:
                document = {name: values[0] for name, values in parse_qs(address.query).items()}
            server.documents.append(document)
            answer = (
                server.answers.pop(0)
                if server.answers
                else server.answer(self.command, address.path, document, self.headers["Authorization"] or "")
            )
            if answer is None:
                return
            status, body = answer
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, *_: object) -> None:
            """Leave out a line for each request."""

    return Handler
