# SPDX-License-Identifier: Apache-2.0
"""One broker for many processes: the first starts it, whoever is last may use it to the end, and then it is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.services.process import listens

ROOT = Path(__file__).parents[2]
# says where the broker is and which topics it has, then uses it until its input ends
_USER = """
import sys
from pathlib import Path
from tests.services.shared_broker import shared_broker
with shared_broker(Path(sys.argv[1]), lambda broker: broker.create_topic(sys.argv[2])) as broker:
    topics = broker.admin.list_topics(timeout=20).topics
    print(broker.bootstrap, *[name for name in topics if not name.startswith("__")], flush=True)
    sys.stdin.read()
print("left", flush=True)
"""


class User:
    """A process that uses the broker of a folder."""

    def __init__(self, folder: Path, topic: str) -> None:
        line = [sys.executable, "-c", _USER, str(folder), topic]
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, bufsize=1
        )

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        """Let it end."""
        assert self.process.stdin is not None
        self.process.stdin.close()


def test_the_first_starts_it_and_waits_for_the_others(tmp_path: Path) -> None:
    first = User(tmp_path / "b", "one")
    address, *topics = first.line().split()
    assert topics == ["one"]
    others = [User(tmp_path / "b", "two") for _ in range(2)]
    assert [other.line() for other in others] == [f"{address} one"] * 2, "started and filled once"
    first.end()
    others[0].process.kill()  # who is killed is waited for no longer
    others[0].process.wait()
    assert AdminClient({"bootstrap.servers": address}).list_topics(timeout=20).brokers, "one still uses it"
    assert first.process.poll() is None
    others[1].end()
    assert others[1].line() == "left"
    assert first.line() == "left"
    assert first.process.wait(30) == 0
    assert not listens(int(address.rpartition(":")[2]))
    assert not (tmp_path / "b" / "address.json").exists(), "who comes later starts another"
