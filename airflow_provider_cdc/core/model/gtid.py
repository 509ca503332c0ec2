# SPDX-License-Identifier: Apache-2.0
"""Parse global transaction identifiers (GTID) of MySQL and MariaDB."""

from __future__ import annotations

import re
from typing import NamedTuple

# MySQL's is a UUID and a number, since 8.3 with a tag between them; MariaDB's are domain, server and number.
_MYSQL = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?::[a-z_][a-z0-9_]{0,31})?):([0-9]{1,20})")
_MARIADB = re.compile(r"([0-9]{1,10})-[0-9]{1,10}-([0-9]{1,20})")


class Gtid(NamedTuple):
    """Hold one GTID.

    :param flavour: ``mysql`` or ``mariadb``.
    :param stream: the scope of its numbers: server UUID with the tag, or MariaDB's domain.
    """

    flavour: str
    stream: str
    number: int


def parse_gtid(text: str | None) -> Gtid | None:
    """Parse a GTID; return None if the text is not a GTID."""
    if text is None:
        return None
    if match := _MYSQL.fullmatch(text):
        return Gtid("mysql", match[1].lower(), int(match[2]))
    if match := _MARIADB.fullmatch(text):
        return Gtid("mariadb", match[1], int(match[2]))
    return None


def server_of(transaction_id: str | None) -> str | None:
    """Return which server wrote a GTID, None if the text is not a GTID."""
    gtid = parse_gtid(transaction_id)
    return None if gtid is None else gtid.flavour
