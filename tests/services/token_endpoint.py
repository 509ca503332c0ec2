# SPDX-License-Identifier: Apache-2.0
"""A server that gives tokens as OpenID Connect and Azure's metadata service do; nobody signs them."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
SECONDS = 600


def unsigned_token(subject: str = "cdc") -> str:
    """Return a JSON web token of algorithm ``none``."""
    now = int(time.time())
    parts = {"alg": "none"}, {"sub": subject, "iat": now, "exp": now + SECONDS}
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), ""])


class TokenEndpoint:
    """A server that is ready when the constructor returns.

    folder: takes its certificate, which it signed itself.

    It gives everybody a token, and keeps headers (names in small letters) and form of each request.
    """

    def __init__(self, folder: Path) -> None:
        self.requests: list[tuple[dict[str, str], dict[str, str]]] = []
        self.certificate = folder / "certificate.pem"
        key = folder / "key.pem"
        _sign(self.certificate, key)
        self._plain = _serve(self.requests)
        self._server = _serve(self.requests)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        for server in (self._plain, self._server):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"https://{HOST}:{self._server.server_port}/token"
        self.plain_url = f"http://{HOST}:{self._plain.server_port}/token"

    def stop(self) -> None:
        """Stop both servers."""
        for server in (self._plain, self._server):
            server.shutdown()
            server.server_close()


def _serve(requests: list[tuple[dict[str, str], dict[str, str]]]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({name: value for name, value in parse_qsl(self.path.partition("?")[2])})

        def do_POST(self) -> None:
            self._answer(dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode())))

        def _answer(self, form: Mapping[str, str]) -> None:
            requests.append(({name.lower(): value for name, value in self.headers.items()}, dict(form)))
            body = json.dumps(
                {"access_token": unsigned_token(), "expires_in": SECONDS, "token_type": "bearer"}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Leave out a line for each request."""

    return ThreadingHTTPServer((HOST, 0), Handler)


def private_key() -> tuple[rsa.RSAPrivateKey, str]:
    """Return a new key, and the same as PEM text."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key, key.private_bytes(*form).decode()


def _sign(certificate: Path, key_file: Path) -> None:
    key, text = private_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_text(text)
