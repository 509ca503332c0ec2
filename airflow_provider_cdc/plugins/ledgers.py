# SPDX-License-Identifier: Apache-2.0
"""Open the ledgers that the page shows, for reading only; a ledger that does not answer is a state, not a fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePath

from airflow.providers.common.compat.sdk import conf
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from airflow_provider_cdc.core.errors import CdcError, UnavailableError
from airflow_provider_cdc.ledger.database import Database

# After a failure nobody waits for the database again for so long: requests share the api-server's threads with Airflow.
PAUSE_SECONDS = 10
# A changed connection is noticed after so long; until then no secrets backend is asked.
_RESOLVE_SECONDS = 60


@dataclass
class PageLedger:
    """One ledger of the configuration.

    :param name: what users see and what requests name.
    :param source: connection id or URL, as configured.
    :param clock: seconds that only grow.
    """

    name: str
    source: str
    clock: Callable[[], float] = time.monotonic
    _database: tuple[float, str, Database] | None = field(default=None, repr=False)
    _failure: tuple[float, UnavailableError] | None = field(default=None, repr=False)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one consistent read.

        :raises CdcError: the ledger cannot be read, or could not some seconds ago.
        """
        failure = self._failure  # other threads replace it
        if failure is not None and self.clock() < failure[0]:
            raise failure[1]
        try:
            with self._opened().reading() as connection:
                yield connection
        except UnavailableError as error:
            self._failure = (self.clock() + PAUSE_SECONDS, error)
            raise
        self._failure = None

    def _opened(self) -> Database:
        from airflow_provider_cdc.connections.lookup import ledger_url

        opened = self._database
        if opened is None or self.clock() >= opened[0]:
            url = ledger_url(self.source)
            database = opened[2] if opened is not None and opened[1] == url else Database(url, read_only=True)
            opened = self._database = (self.clock() + _RESOLVE_SECONDS, url, database)
        return opened[2]


@cache
def page_ledgers() -> dict[str, PageLedger]:
    """Return the ledgers of ``[cdc] page_ledgers`` by name, in the order of the configuration."""
    sources = [source.strip() for source in conf.get("cdc", "page_ledgers", fallback="default").split(",")]
    ledgers: dict[str, PageLedger] = {}
    for source in filter(None, sources):
        shown = _shown(source)
        name = shown if shown not in ledgers else f"{shown} ({len(ledgers) + 1})"
        ledgers[name] = PageLedger(name, source)
    return ledgers


def _shown(source: str) -> str:
    """Return a name for users: a connection's id; of a URL the database, without its server and users."""
    if "://" not in source:
        return source
    try:
        url = make_url(source)
    except ArgumentError:
        return "not a database URL"
    return f"{url.get_backend_name()} {PurePath(url.database or '').name}"


def state_of(ledger: PageLedger, error: CdcError | None = None) -> dict[str, str]:
    """Return what users may know of a ledger: addresses and users of databases are only in the api-server's log."""
    if error is None:
        return {"name": ledger.name, "state": "ok"}
    other = "unreachable" if isinstance(error, UnavailableError) else "unusable"
    state = "missing" if error.code == "ledger.missing" else other  # nothing is wrong: no batch has run yet
    return {"name": ledger.name, "state": state, "code": error.code}
