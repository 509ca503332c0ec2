# SPDX-License-Identifier: Apache-2.0
"""Own the Spark applications that batches are handed to, one batch at a time each."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from airflow_provider_cdc.engine.kept_spark import GATEWAY_FILE, Application, Start, Wish
from airflow_provider_cdc.engine.task import die_with_parent, kill_group

_LOG = "spark.log"
_BATCHES = 250  # after so many an application ends, whatever grows in it: a start costs 7 CPU-s


@dataclass
class _Owned:
    """An application, from the wish that makes it.

    :param folder: for Spark's files; only this user can look into it.
    :param batch: whose it is now, None between two batches.
    :param since: when its last batch ended.
    :param batches: how many it has had.
    """

    wish: Wish
    folder: Path
    batch: Connection | None
    process: subprocess.Popen[bytes] | None = None
    lent: Application | None = None
    since: float = field(default_factory=time.monotonic)
    batches: int = 0

    @property
    def waits(self) -> bool:
        """Return whether it may be handed to a batch."""
        return self.lent is not None and self.process is not None and self.process.poll() is None


class Applications:
    """Start, lend and end applications; what a batch asks for comes over its connection, and so does the answer."""

    def __init__(self) -> None:
        self._all: list[_Owned] = []

    @property
    def starting(self) -> bool:
        """Return whether a batch waits for one that starts."""
        return any(owned.process is not None and owned.lent is None for owned in self._all)

    def wish(self, batch: Connection, wish: Wish) -> None:
        """Answer with an application that waits, or with the folder in which the batch is to have one started.

        A large request is several batches for Spark, whose application is the same.
        """
        for owned in self._all:
            if owned.batch in (None, batch) and owned.wish.key == wish.key and owned.waits:
                owned.batch, owned.wish = batch, wish
                _answer(batch, owned.lent)
                return
        owned = _Owned(wish, Path(tempfile.mkdtemp(prefix="airflow-cdc-spark-")), batch)
        self._all.append(owned)
        _answer(batch, owned.folder)

    def start(self, batch: Connection, start: Start) -> None:
        """Start an application; :meth:`look` answers once it waits for its driver, or has ended."""
        owned = [owned for owned in self._all if owned.batch is batch][-1]  # those before have ended, or never began
        try:
            with (owned.folder / _LOG).open("ab") as log:
                owned.process = subprocess.Popen(
                    start.command,
                    stdin=subprocess.PIPE,  # at whose end Spark's JVM ends
                    stdout=log,
                    stderr=log,
                    env=start.environment,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
        except OSError as error:
            _answer(batch, f"{start.command[0]}: {error}")

    def look(self, now: float) -> None:
        """Answer batches whose application has started, and end those that waited long enough.

        :param now: seconds of the monotonic clock.
        """
        for owned in list(self._all):
            if owned.process is None or (owned.batch is not None and owned.lent is not None):
                continue
            ended = owned.process.poll() is not None
            if owned.batch is None:
                if ended or now >= owned.since + owned.wish.keep_seconds:
                    self._end(owned)
            elif (gateway := _gateway(owned.folder / GATEWAY_FILE)) is not None:
                owned.lent = Application(owned.process.pid, *gateway, owned.folder / _LOG)
                _answer(owned.batch, owned.lent)
            elif ended:
                _answer(owned.batch, (owned.folder / _LOG).read_text(encoding="utf-8", errors="replace"))
                owned.batch = None

    def give_back(self, batch: Connection, *, well: bool) -> None:
        """Take back what a batch had.

        :param well: the batch did all of its work; what else is left of it in an application ends with that.
        """
        for owned in [owned for owned in self._all if owned.batch is batch]:
            owned.batches += 1
            if well and owned.lent is not None and owned.batches < _BATCHES:
                os.truncate(owned.lent.log, 0)  # the next batch's lines are its own
                owned.batch, owned.since = None, time.monotonic()
            else:
                self._end(owned)

    def end(self) -> None:
        """End all."""
        for owned in list(self._all):
            self._end(owned)

    def _end(self, owned: _Owned) -> None:
        self._all.remove(owned)
        if owned.process is not None:
            kill_group(owned.process.pid)
            owned.process.wait()
            if owned.process.stdin is not None:
                owned.process.stdin.close()
        shutil.rmtree(owned.folder, ignore_errors=True)


def _answer(batch: Connection, answer: Application | Path | str | None) -> None:
    """Answer a batch; one that is gone is noticed elsewhere."""
    with contextlib.suppress(OSError):
        batch.send(answer)


def _gateway(file: Path) -> tuple[int, str] | None:
    """Take port and secret as Spark's JVM writes them: a number, and the bytes of a text behind their number."""
    try:
        written = file.read_bytes()
    except FileNotFoundError:
        return None
    file.unlink()
    port, length = struct.unpack_from(">ii", written)
    return port, written[8 : 8 + length].decode()
