# SPDX-License-Identifier: Apache-2.0
"""A server as a child process: it logs to a file, is waited for, and never outlives the one who started it."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

# To verify the classes takes a fifth of a start, and the jars are locked ones.
_UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
# The optimising compiler and a parallel collector cost more than they gain a Java that lives for minutes.
SHORT_LIVED_JAVA = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {_UNVERIFIED}"

# The guard reads from a pipe only the parent holds: when the parent dies, however it dies, the server is stopped.
_GUARDED = """\
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
{ read -r _; kill "$server"; } <&3 >/dev/null 2>&1 &
guard=$!
exec 3<&-
wait "$server"
code=$?
kill "$guard" 2>/dev/null
exit "$code"
"""


class NotAvailable(RuntimeError):
    """A service cannot run on this machine; says why and what would help."""


class Service(ABC):
    """Run until it is stopped, or a block of ``with`` ends."""

    @abstractmethod
    def stop(self) -> None:
        """End it, and remove what it wrote."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Server:
    """A running server process.

    name: what messages call it.
    command: program and arguments.
    log: the file its output goes to.
    env: its environment; this process's if None.
    user: the system user it runs as; the present one if None.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", _GUARDED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=log.parent,
                start_new_session=True,
                **identity(user),
            )
        atexit.register(self.stop)

    def wait_until(self, ready: Callable[[], bool], timeout: float = 60) -> None:
        """Wait until `ready` says so; an error with the log's end if the server dies before or takes too long.

        timeout: seconds.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            if self._process.poll() is not None:
                raise NotAvailable(f"{self.name} stopped with code {self._process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise NotAvailable(f"{self.name} was not ready after {timeout:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def root_pid(self) -> int:
        """The process that the server's own descend from."""
        return self._process.pid

    def pids(self) -> list[int]:
        """Return the processes of the server's session but the guards that watch its parent."""
        pids = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                pid = int(entry.name)
                if os.getsid(pid) == self._process.pid and not (entry / "cmdline").read_bytes().startswith(b"sh\0"):
                    pids.append(pid)
        return pids

    def tail(self, lines: int = 30) -> str:
        """Return the last lines of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def stop(self, timeout: float = 15) -> None:
        """Stop the server if it still runs.

        timeout: seconds it has to end in peace.
        """
        atexit.unregister(self.stop)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            # The session was created for this server, so its group holds nothing else.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def identity(user: str | None) -> dict[str, object]:
    """Popen's arguments that run a program as another user, without that of the present one's groups."""
    return {} if user is None else {"user": user, "group": _group(user), "extra_groups": []}


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Return whether somebody accepts connections on a loopback port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5):
        return True
    return False
