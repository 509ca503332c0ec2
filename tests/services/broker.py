# SPDX-License-Identifier: Apache-2.0
"""A single-node Kafka broker (KRaft) on free ports of this machine."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from airflow_provider_cdc.engine.cache import cache_folder
from airflow_provider_cdc.engine.jars import fetch, jar_cache
from airflow_provider_cdc.engine.java import find_java
from tests.services.process import SHORT_LIVED_JAVA, NotAvailable, Server, Service, free_port

LOCK = Path(__file__).with_name("broker.lock")
USER = "cdc"
PASSWORD = "correct horse"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},SASL_PLAINTEXT://127.0.0.1:{sasl}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
message.max.bytes=20971520
num.network.threads=2
num.io.threads=4
log.segment.bytes=67108864
metadata.max.idle.interval.ms=0
"""

_FLAGS = ["-Xmx512m", *SHORT_LIVED_JAVA.split(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]


class Broker:
    """A broker that runs, whoever started it.

    bootstrap: address of the open listener.
    sasl_bootstrap: address of the listener that wants SASL/PLAIN with USER and PASSWORD, or a token that nobody signed.
    """

    def __init__(self, bootstrap: str, sasl_bootstrap: str) -> None:
        self.bootstrap, self.sasl_bootstrap = bootstrap, sasl_bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic whose records stay, however old their timestamps are.

        partitions: their number.
        config: topic settings on top of that.
        """
        self.create_topics({name: partitions}, config)

    def create_topics(self, partitions: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create many topics in one request; they are there for every client when it returns.

        partitions: number of partitions by topic.
        """
        if not partitions:
            return
        settings = {"retention.ms": "-1", **(config or {})}
        topics = [NewTopic(name, count, 1, config=settings) for name, count in partitions.items()]
        for created in self.admin.create_topics(topics, operation_timeout=30).values():
            created.result(60)
        # the controller has made them; what the broker says of itself may be some milliseconds behind
        deadline = time.monotonic() + 30
        while missing := partitions.keys() - self.admin.list_topics(timeout=30).topics.keys():
            if time.monotonic() > deadline:
                raise NotAvailable(f"the broker does not show {len(missing)} topics that were made, as {min(missing)}")

    def sasl_settings(self, password: str = PASSWORD) -> dict[str, str]:
        """Client settings for the listener that wants a password."""
        return {
            "bootstrap.servers": self.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": password,
        }


class OwnBroker(Broker, Service):
    """A broker that is ready when the constructor returns, and gone with its data after `stop`.

    folder: where its data lives; a temporary folder if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        java = find_java().executable
        jars = fetch(LOCK, jar_cache(), java, lambda text: print(text, file=sys.stderr, flush=True))
        self._java = [str(java), *_FLAGS, "-cp", ":".join(map(str, jars))]
        self._temporary = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="cdc-broker-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        # A port that was free when asked may be taken when the broker binds it.
        for attempt in range(3):
            try:
                self._start()
                break
            except NotAvailable as problem:
                if attempt == 2 or "BindException" not in str(problem):
                    self._clean()
                    raise
            except BaseException:
                self._clean()
                raise

    def _start(self) -> None:
        plain, controller, sasl = free_port(), free_port(), free_port()
        properties = self.folder / "server.properties"
        data = self.folder / "data"
        properties.write_text(
            _PROPERTIES.format(plain=plain, controller=controller, sasl=sasl, data=data, user=USER, password=PASSWORD)
        )
        if not data.exists():
            self._format(data, properties)
        self._server = Server("Kafka broker", [*self._java, "kafka.Kafka", str(properties)], self.folder / "broker.log")
        # a broker that resumes has other ports
        super().__init__(f"127.0.0.1:{plain}", f"127.0.0.1:{sasl}")
        self._server.wait_until(self._answers, timeout=120)

    def _format(self, data: Path, properties: Path) -> None:
        """Make the folder of data, or copy the one that was made before: to make it takes a JVM of its own."""
        identity = LOCK.read_bytes() + _PROPERTIES.encode()
        made = cache_folder() / "broker" / hashlib.sha256(identity).hexdigest()[:20]
        if made.exists():
            shutil.copytree(made, data)
            return
        self._make(properties)
        part = made.with_name(f"{made.name}.{os.getpid()}")
        shutil.copytree(data, part)
        with contextlib.suppress(OSError):  # another process was first
            part.rename(made)
        shutil.rmtree(part, ignore_errors=True)

    def _make(self, properties: Path) -> None:
        # One random id in 64 begins with a dash, so it must not stand as an argument of its own.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        options = ["--standalone", f"--cluster-id={cluster}", "--config", str(properties)]
        run = subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", *options], capture_output=True, text=True
        )
        if run.returncode:
            raise NotAvailable(f"Kafka storage cannot be formatted:\n{run.stdout}{run.stderr}")

    def _answers(self) -> bool:
        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def pause(self) -> None:
        """Stop the process and keep the data; `resume` starts it again, on other ports."""
        self._server.stop()

    def pids(self) -> list[int]:
        """Return the processes of the server."""
        return self._server.pids()

    def resume(self) -> None:
        self._start()

    def stop(self) -> None:
        """Stop the process and delete its data."""
        self._server.stop()
        self._clean()

    def _clean(self) -> None:
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
