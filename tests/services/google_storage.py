# SPDX-License-Identifier: Apache-2.0
"""Google Cloud Storage on this machine: its XML API in front of the S3 service, which stores the objects.

The two APIs differ in the names of headers, in generations, and in how a write is refused where an object is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from tests.services.process import Server, free_port, listens
from tests.services.s3 import S3

_KEY = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
_OWN = {"host", "authorization", "connection", "accept-encoding"}
_HOP = {"connection", "transfer-encoding", "content-length", "server", "date"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port: ClassVar[int]

    def log_message(self, *arguments: Any) -> None:
        pass

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {"Authorization": _KEY}
        for name, value in self.headers.items():
            lower = name.lower()
            if lower == "x-goog-if-generation-match":
                assert value == "0"
                headers["If-None-Match"] = "*"
            elif lower not in _OWN:
                headers[lower.replace("x-goog-", "x-amz-")] = value
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        path, mark, query = self.path.partition("?")
        connection.request(self.command, f"{quote(unquote(path))}{mark}{query}", body, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("x-goog-generation", "1")
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", size or "0")
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward


@contextmanager
def google_storage(s3: S3, folder: Path) -> Iterator[dict[str, Any]]:
    """Run the service in a process of its own; give a key file with which clients find it and do not log in.

    :param folder: takes its log.
    """
    port = free_port()
    command = [sys.executable, "-m", __name__, str(port), str(urlsplit(s3.endpoint).port)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    server = Server("Google storage", command, folder / "google.log", env=environment)
    try:
        server.wait_until(lambda: listens(port), timeout=60)
        no_login = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
        yield {"gcs_base_url": f"http://127.0.0.1:{port}", **no_login}
    finally:
        server.stop()


if __name__ == "__main__":
    _Handler.port = int(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
