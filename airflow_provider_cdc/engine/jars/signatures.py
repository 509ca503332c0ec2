# SPDX-License-Identifier: Apache-2.0
"""Write the certificate authorities that this machine trusts to a file for Java."""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path

PASSWORD = "changeit"

_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2


def write_truststore(path: Path) -> int:
    """Write a JKS trust store of the authorities the system's own programs trust; return how many.

    A Java that comes as a Python package brings its own list, which lacks what a company added to the system's.
    """
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    entries = [struct.pack(">III", _MAGIC, _VERSION, len(certificates))]
    for number, certificate in enumerate(certificates):
        entries += [struct.pack(">I", _TRUSTED), _text(f"ca-{number}"), struct.pack(">Q", 0), _text("X.509")]
        entries += [struct.pack(">I", len(certificate)), certificate]
    content = b"".join(entries)
    # The format's own seal; it detects damage and keeps nothing secret.
    seal = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False).digest()
    path.write_bytes(content + seal)
    return len(certificates)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
