# SPDX-License-Identifier: Apache-2.0
"""Look at clusters and ledgers for many triggers: shared, bounded, and with pauses where nobody answers.

A look blocks a thread for as long as the other side takes. Each address has threads of its own, so that one which does
not answer delays only those who ask for it.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.observability.metrics import Metric, error_metrics, send
from airflow_provider_cdc.watch.condition import Answer, Condition

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.source_log import ResolvedSource, SourceLog
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.ledger import ProgressSample

T = TypeVar("T")
Stored = TypeVar("Stored")
Seen = TypeVar("Seen")

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 120.0
"""Seconds without looks after an address did not answer; doubled each time."""

FORGET_AFTER = 600.0
"""Seconds that the result of a look is remembered at most."""

SILENT = ("kafka.unavailable", "canal.unavailable", "files.unavailable", "ledger.unavailable")
"""Codes that concern the address, not the one who asks."""


# Whoever starts a thread waits until it runs, and imports take long: neither may stop the event loop.
_starter = ThreadPoolExecutor(1, thread_name_prefix="cdc-look-start")


def _load() -> None:
    """Import what looks need."""
    for name in ("ledger", "batch.source_log", "connections.lookup", "sources.kafka_log"):
        importlib.import_module(f"airflow_provider_cdc.{name}")
    importlib.import_module("confluent_kafka.admin")


class Address:
    """Looks at one address.

    :param threads: looks at a time.
    :param clock: seconds on a clock that never goes back.
    """

    def __init__(self, name: str, threads: int = 4, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"cdc-look-{name}"[:60])
        self._clock = clock
        self._running: dict[Hashable, asyncio.Future[Any]] = {}
        self._done: dict[Hashable, tuple[float, Any]] = {}
        self._silences = 0
        self._pause_ends = 0.0
        self._silence: CdcError | None = None

    async def ask(self, key: Hashable, work: Callable[[], T], max_age: float) -> T:
        """Return the result of a look; one that runs, or began not long ago, serves all who ask for the same.

        :param key: what is looked at.
        :param work: the look; blocks.
        :param max_age: seconds since a look began after which a new one is needed.
        :raises CdcError: the error of the look, or while the address is not asked the last one.
        """
        now = self._clock()
        began, value = self._done.get(key, (0.0, None))
        if key in self._done and now - began < max_age:
            return value  # type: ignore[no-any-return]
        if key not in self._running:
            if self._silence is not None and now < self._pause_ends:
                raise again(self._silence)
            self._start(key, work, now)
        # A trigger that is cancelled leaves the look to the others.
        result, error = await asyncio.shield(self._running[key])
        if error is not None:
            raise again(error)
        return result  # type: ignore[no-any-return]

    def _start(self, key: Hashable, work: Callable[[], Any], now: float) -> None:
        future = asyncio.ensure_future(self._run(work))
        self._running[key] = future
        future.add_done_callback(lambda done: self._finish(key, now, done))

    async def _run(self, work: Callable[[], Any]) -> tuple[Any, CdcError | None]:
        loop = asyncio.get_running_loop()
        return await asyncio.wrap_future(await loop.run_in_executor(_starter, self._pool.submit, _attempt, work))

    def _finish(self, key: Hashable, began: float, future: asyncio.Future[Any]) -> None:
        self._running.pop(key, None)
        now = self._clock()
        self._done = {other: item for other, item in self._done.items() if now - item[0] < FORGET_AFTER}
        if future.cancelled():
            return
        error: CdcError | None
        result, error = future.result()
        if error is None:
            self._done[key] = (began, result)
            self._silences, self._silence = 0, None
        elif error.code in SILENT:
            self._silences += 1
            self._silence = error
            self._pause_ends = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._silences - 1))


def _attempt(work: Callable[[], T]) -> tuple[T | None, CdcError | None]:
    """Return a look's result or its error.

    The error comes without its frames: they hold clients, which block whichever thread drops them last.
    """
    try:
        return work(), None
    except CdcError as error:
        return None, again(error)


def again(error: CdcError) -> CdcError:
    """Return an error to raise once more, without the frames of the first time."""
    make, arguments = error.__reduce__()
    copy: CdcError = make(*arguments)
    return copy


class Looks:
    """Looks at all clusters and ledgers of one event loop."""

    def __init__(self) -> None:
        from airflow_provider_cdc.connections.settings import look_threads, look_timeout

        self._threads, self._timeout = look_threads(), look_timeout()
        self._addresses: dict[str, Address] = {}
        self._clients = threading.local()
        self._recorded: dict[tuple[str, str], datetime] = {}
        self._loading: asyncio.Future[None] | None = None

    async def answer(self, condition: Condition[Stored, Seen], max_age: float) -> Answer:
        """Return what a condition says now.

        :param max_age: seconds that readings for others may be old.
        :raises CdcError: ledger or log cannot be read.
        """
        return condition.judge(*await self.readings(condition, max_age))

    async def readings(self, condition: Condition[Stored, Seen], max_age: float) -> tuple[Stored | None, Seen | None]:
        """Return what a condition reads of ledger and log. Parameters and errors are those of :meth:`answer`."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(_starter, _load)
        await asyncio.shield(self._loading)
        stored, seen = None, None
        if condition.reads_ledger:
            stored = await self._stored(condition, max_age)
        try:
            if condition.reads_log:
                seen = await self._seen(condition, stored, max_age)
        except CdcError as error:
            send(condition.pipeline, error_metrics(error))
            raise
        sample = condition.report(stored, seen)
        if sample is not None:
            await self._record(condition.pipeline, sample)
        return stored, seen

    async def _record(self, pipeline: CdcPipeline, sample: ProgressSample) -> None:
        """Record a sample of a pipeline's progress once, for all who looked in the same minute."""
        from airflow_provider_cdc.connections.lookup import async_ledger_url
        from airflow_provider_cdc.ledger import Ledger

        if self._recorded.get((pipeline.ledger, pipeline.name)) == sample.seen_at:
            return
        self._recorded[pipeline.ledger, pipeline.name] = sample.seen_at
        url = await async_ledger_url(pipeline.ledger)
        with suppress(CdcError):  # the answer does not depend on its record
            work = lambda: Ledger(url).record_progress(pipeline.name, sample)  # noqa: E731
            await self._address(url).ask(("progress", pipeline.name), work, max_age=0)

    async def _stored(self, condition: Condition[Stored, Seen], max_age: float) -> Stored:
        from airflow_provider_cdc.connections.lookup import async_ledger_url
        from airflow_provider_cdc.ledger import Ledger

        url = await async_ledger_url(condition.pipeline.ledger)
        key = ("ledger", condition.ledger_key())
        return await self._address(url).ask(key, lambda: condition.stored(Ledger(url)), max_age)

    async def _seen(self, condition: Condition[Stored, Seen], stored: Stored | None, max_age: float) -> Seen:
        from airflow_provider_cdc.batch.source_log import resolve_source

        source = await resolve_source(condition.pipeline, "a trigger", self._timeout)

        def work() -> Seen:
            log, started = self._client(source), time.monotonic()
            try:
                return condition.seen(log, stored)
            except CdcError:
                log.close()
                raise
            finally:
                seconds = time.monotonic() - started
                send(condition.pipeline, [Metric("timer", "cdc.look.duration", seconds)])

        key = (source.name, condition.log_key(stored))
        return await self._address(source.address).ask(key, work, max_age)

    def _address(self, name: str) -> Address:
        if name not in self._addresses:
            shown = name.rpartition("@")[2]  # behind login and password of a URL
            self._addresses[name] = Address(shown, self._threads)
        return self._addresses[name]

    def _client(self, source: ResolvedSource) -> SourceLog:
        """Return this thread's client of a source; one whose settings changed is replaced."""
        clients: dict[Hashable, tuple[Hashable, SourceLog]] = self._clients.__dict__.setdefault("of", {})
        key, log = clients.get(source.name, (None, None))
        if log is None or key != source.key:
            log = source.open()
            clients[source.name] = source.key, log
        return log


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, Looks] = WeakKeyDictionary()


def shared_looks() -> Looks:
    """Return the looks that all triggers of the running event loop share."""
    loop = asyncio.get_running_loop()
    if loop not in _looks:
        _looks[loop] = Looks()
    return _looks[loop]
