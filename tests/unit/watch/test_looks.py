# SPDX-License-Identifier: Apache-2.0
"""Looks at one address: shared while they run and for a while after, in threads of their own, with growing pauses."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import CdcError, SourceError, UnavailableError
from airflow_provider_cdc.watch.looks import FIRST_PAUSE, LONGEST_PAUSE, Address


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Work:
    """A look that counts how often it is made."""

    def __init__(self, error: CdcError | None = None) -> None:
        self.calls = 0
        self.error = error

    def __call__(self) -> int:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.calls


def silence() -> UnavailableError:
    return UnavailableError("kafka.unavailable", "nobody answers", hint="wait")


async def outcome(address: Address, work: Callable[[], Any], key: str = "a", max_age: float = 0) -> Any:
    try:
        return await address.ask(key, work, max_age)
    except CdcError as error:
        return error.code


def test_those_who_ask_at_once_share_one_look() -> None:
    go, work = threading.Event(), Work()

    def slow() -> int:
        go.wait()
        return work()

    async def ask() -> list[int]:
        address = Address("x", clock=Clock())
        asked = [asyncio.create_task(address.ask("a", slow, 0)) for _ in range(20)]
        await asyncio.sleep(0)
        asked[0].cancel()  # of the one that began it
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*asked[1:])

    assert asyncio.run(ask()) == [1] * 19


def test_a_result_serves_until_it_is_too_old() -> None:
    clock, work = Clock(), Work()

    async def ask() -> list[Any]:
        address = Address("x", clock=clock)
        results = [await outcome(address, work, max_age=30)]
        for seconds in (29, 1, 1):
            clock.now += seconds
            results.append(await outcome(address, work, max_age=30))
        return [*results, await outcome(address, work, "other", max_age=30), await outcome(address, work, max_age=0)]

    assert asyncio.run(ask()) == [1, 1, 2, 2, 3, 4]


def test_an_address_that_does_not_answer_is_asked_ever_more_rarely() -> None:
    clock, work = Clock(), Work(silence())

    async def ask() -> list[float]:
        address = Address("x", clock=clock)
        at = []
        for second in range(1200):
            clock.now = 1000.0 + second
            before = work.calls
            assert await outcome(address, work, str(second % 7)) == "kafka.unavailable"
            if work.calls > before:
                at.append(second)
        return [later - earlier for earlier, later in itertools.pairwise(at)]

    pauses = asyncio.run(ask())
    doubled = [FIRST_PAUSE * 2**n for n in range(len(pauses))]
    assert pauses == [min(LONGEST_PAUSE, pause) for pause in doubled]
    assert pauses[-1] == LONGEST_PAUSE


def test_an_answer_ends_the_pauses() -> None:
    clock, work = Clock(), Work(silence())

    async def ask() -> list[Any]:
        address = Address("x", clock=clock)
        results = []
        for error in (silence(), silence(), None, silence(), None):
            work.error = error
            results.append(await outcome(address, work))
            clock.now += FIRST_PAUSE * 2
        return results

    assert asyncio.run(ask()) == ["kafka.unavailable", "kafka.unavailable", 3, "kafka.unavailable", 5]


@pytest.mark.parametrize(
    "error", [SourceError("kafka.topic_unknown", "no topic"), UnavailableError("kafka.slow", "one partition is slow")]
)
def test_an_error_of_one_who_asks_makes_nobody_wait(error: CdcError) -> None:
    bad, good = Work(error), Work()

    async def ask() -> list[Any]:
        address = Address("x", clock=Clock())
        return [await outcome(address, bad), await outcome(address, good, "b"), await outcome(address, bad)]

    assert asyncio.run(ask()) == [error.code, 1, error.code]
    assert bad.calls == 2


def test_an_error_keeps_its_words_and_drops_its_frames() -> None:
    async def ask() -> CdcError:
        try:
            await Address("x").ask("a", Work(silence()), 0)
        except CdcError as error:
            return error
        raise AssertionError

    error = asyncio.run(ask())
    assert (str(error), type(error)) == (str(silence()), UnavailableError)
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "__call__" not in frames and error.__context__ is None
