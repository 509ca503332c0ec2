# SPDX-License-Identifier: Apache-2.0
"""Start what rounds run on: a broker, stores of lakes, a database and a catalog."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from tests.faults.lakes import LAKES, Lake
from tests.services.broker import OwnBroker
from tests.services.postgres import Postgres
from tests.services.rest_catalog import LosingProxy, shared_catalog


class Services:
    """The broker, stores and database of all rounds; each starts when a round needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stack = folder, ExitStack()
        self._lakes: dict[str, Lake] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def broker(self) -> OwnBroker:
        """A Kafka broker."""
        return self._stack.enter_context(OwnBroker())

    @cached_property
    def postgres(self) -> Postgres:
        """A PostgreSQL server."""
        return self._stack.enter_context(Postgres())

    def lake(self, scheme: str) -> Lake:
        """Return the store of a scheme."""
        if scheme not in self._lakes:
            self._lakes[scheme] = LAKES[scheme](self._stack, self.folder)
        return self._lakes[scheme]

    @cached_property
    def catalog(self) -> LosingProxy:
        """Return what stands between a pipeline and a REST catalog."""
        proxy = LosingProxy(shared_catalog())
        self._stack.callback(proxy.stop)
        return proxy
