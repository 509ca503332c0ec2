# SPDX-License-Identifier: Apache-2.0
"""The one call of a registry that readers make, over the schemas of a capture; it can be slow, away or forbid."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SCHEMAS = "schemas.json"
_CALL = re.compile(r"(?:/[a-z0-9/]*)?/schemas/ids/(\d+)")


def schemas_of(capture: Path) -> dict[int, dict[str, Any]]:
    """Return the schemas of a capture's registry by id, as it answers."""
    entries = json.loads((capture / SCHEMAS).read_text(encoding="utf-8"))
    return {entry["id"]: {key: entry[key] for key in ("schema", "schemaType") if key in entry} for entry in entries}


class ServedSchemas:
    """A server that answers as Confluent's registry does.

    :param schemas: by id.
    :ivar url: its address.
    :ivar asked: how often each id was asked for.
    :ivar logins: values of ``Authorization`` that came.
    :ivar status: answers of this status only, 0 for none.
    :ivar pause: seconds before each answer.
    """

    def __init__(self, schemas: Mapping[int, Mapping[str, Any]]) -> None:
        self.asked: Counter[int] = Counter()
        self.logins: set[str | None] = set()
        self.status, self.pause, self.body = 0, 0.0, b"{}"
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # an answer is one packet: a second one waits 40 ms for the first to be acknowledged

            def do_GET(self) -> None:
                called = _CALL.fullmatch(self.path)
                served.logins.add(self.headers.get("Authorization"))
                time.sleep(served.pause)
                if served.status:
                    return self._answer(served.status, served.body)
                if called is None:
                    return self._answer(404, b"<html>not found</html>")
                served.asked[int(called[1])] += 1
                schema = schemas.get(int(called[1]))
                if schema is None:
                    return self._answer(404, b'{"error_code":40403,"message":"Schema not found"}')
                return self._answer(200, json.dumps(schema).encode())

            def _answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/apis/ccompat/v7"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stop it: nothing listens at its address any more."""
        self._server.shutdown()
        self._server.server_close()
