# SPDX-License-Identifier: Apache-2.0
"""Hadoop's file of credentials: YARN brings its secrets to containers past arguments, variables and scripts.

Layout: ``org.apache.hadoop.security.Credentials``, version 0, as YARN writes it for each container.
"""

from __future__ import annotations

from io import BytesIO

CREDENTIALS_VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
"""Environment variable of Hadoop with the path of such a file."""

_VERSION = b"HDTS\0"
_PARTS_OF_TOKEN = 5  # alias, identifier, password, kind, service
_LONG = -112  # below it a number's first byte says how many follow: WritableUtils.writeVInt


def credentials_file(name: str, secret: bytes) -> bytes:
    """Return the content of a file with one secret."""
    return _VERSION + _number(0) + _number(1) + _part(name.encode()) + _part(secret)


def secret_of(content: bytes, name: str) -> bytes | None:
    """Return a secret from the content of a file, None where it is not in it."""
    if not content.startswith(_VERSION):
        return None
    stream = BytesIO(content[len(_VERSION) :])
    for _ in range(_read_number(stream) * _PARTS_OF_TOKEN):
        _read_part(stream)
    secrets = dict((_read_part(stream), _read_part(stream)) for _ in range(_read_number(stream)))
    return secrets.get(name.encode())


def _number(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    digits = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return (_LONG - len(digits)).to_bytes(1, signed=True) + digits


def _part(content: bytes) -> bytes:
    return _number(len(content)) + content


def _read_number(stream: BytesIO) -> int:
    first = int.from_bytes(stream.read(1), "big", signed=True)
    return first if first >= _LONG else int.from_bytes(stream.read(_LONG - first), "big")


def _read_part(stream: BytesIO) -> bytes:
    return stream.read(_read_number(stream))
