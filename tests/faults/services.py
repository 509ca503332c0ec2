# SPDX-License-Identifier: Apache-2.0
"""Start what rounds run on: a broker, an object store, a database and a catalog."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from tests.faults.store import FailingStore
from tests.services.broker import OwnBroker
from tests.services.postgres import Postgres
from tests.services.rest_catalog import LosingProxy, shared_catalog
from tests.services.s3 import S3


class Services:
    """The broker, store and database of all rounds; each starts when a round needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stack = folder, ExitStack()

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

    @cached_property
    def s3(self) -> S3:
        """An S3 service with the bucket ``lake``."""
        service = self._stack.enter_context(S3())
        service.create_bucket("lake")
        return service

    @cached_property
    def store(self) -> FailingStore:
        """Return what stands between a pipeline and the S3 service."""
        store = FailingStore(self.s3.endpoint)
        self._stack.callback(store.stop)
        return store

    @cached_property
    def catalog(self) -> LosingProxy:
        """Return what stands between a pipeline and a REST catalog."""
        proxy = LosingProxy(shared_catalog())
        self._stack.callback(proxy.stop)
        return proxy
