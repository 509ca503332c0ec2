# SPDX-License-Identifier: Apache-2.0
"""Describe the source: topics of a Kafka cluster and the format of their records, or a destination of Canal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_cdc.core.config.checks import Checks, as_text

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# It is the name of a folder too.
_DESTINATION = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class KafkaSource:
    """Topics that carry one pipeline's changes.

    :param topics: regular expression that must match a topic's whole name, or a list of names.
    :param format: name of the wire format, e.g. ``debezium-json``.
    :param connection: Airflow connection of type ``kafka``; addresses and secrets live there only.
    :param schema_topic: topic with the schema changes, if they do not travel with the rows.
    :param heartbeat_topic: topic whose records prove progress while tables are idle.
    :param signal_topic: topic from which the connector takes signals (Debezium's ``signal.kafka.topic``).
    :param schema_registry: Airflow connection of the schema registry whose schemas the records name.
    :param options: options of the format; no secrets.
    """

    topics: str | list[str]
    format: str
    connection: str = "kafka_default"
    schema_topic: str | None = None
    heartbeat_topic: str | None = None
    signal_topic: str | None = None
    schema_registry: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    reader: ClassVar[str] = "kafka"

    def __post_init__(self) -> None:
        checks = Checks("source")
        self._check_topics(checks)
        checks.text("format", self.format)
        checks.connection("connection", self.connection)
        if self.schema_registry is not None:
            checks.connection("schema_registry", self.schema_registry)
        for name in ("schema_topic", "heartbeat_topic", "signal_topic"):
            value = getattr(self, name)
            if checks.text(name, value, optional=True) and not _TOPIC.fullmatch(value):
                checks.problem(name, f"{value!r} is not a topic name")
        if self.schema_topic is not None and self.schema_topic == self.heartbeat_topic:
            checks.problem("heartbeat_topic", "is the schema topic too")
        if self.signal_topic is not None and self.signal_topic in (self.schema_topic, self.heartbeat_topic):
            checks.problem("signal_topic", "is the schema topic or the heartbeat topic too")
        checks.options("options", self.options, home="the connection named by source.connection")
        checks.raise_any()
        object.__setattr__(self, "options", _texts(self.options))
        if not isinstance(self.topics, str):
            object.__setattr__(self, "topics", list(self.topics))

    def _check_topics(self, checks: Checks) -> None:
        if isinstance(self.topics, str):
            if checks.text("topics", self.topics):
                try:
                    re.compile(self.topics)
                except re.error as error:
                    checks.problem("topics", f"is not a regular expression: {error}")
        elif checks.texts("topics", self.topics, least=1):
            for index, name in enumerate(self.topics):
                if not _TOPIC.fullmatch(name):
                    checks.problem(f"topics[{index}]", f"{name!r} is not a topic name (a list holds no patterns)")

    def data_topics(self, existing: list[str]) -> list[str]:
        """Return the topics among ``existing`` that carry rows, sorted; the other topics of the source never do."""
        special = {self.schema_topic, self.heartbeat_topic, self.signal_topic}
        if isinstance(self.topics, str):
            pattern = re.compile(self.topics)
            return sorted(name for name in existing if name not in special and pattern.fullmatch(name))
        return sorted(name for name in self.topics if name in set(existing) and name not in special)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        topics = self.topics if isinstance(self.topics, str) else list(self.topics)
        return {
            "topics": topics,
            "format": self.format,
            "connection": self.connection,
            "schema_topic": self.schema_topic,
            "heartbeat_topic": self.heartbeat_topic,
            "signal_topic": self.signal_topic,
            "schema_registry": self.schema_registry,
            "options": dict(self.options),
        }

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide the content of the tables."""
        reached = ("connection", "signal_topic", "schema_registry")
        return {key: value for key, value in self.document().items() if key not in reached}


@dataclass(frozen=True)
class CanalSource:
    """A destination of a Canal server, read over Canal's own TCP protocol.

    To planner, ledger and tables it is a topic of one partition, named like the destination.

    :param destination: name of the Canal instance.
    :param connection: Airflow connection of type ``canal``; address and secrets live there only.
    :param max_entries: Canal entries after which a batch without ``until`` ends.
    :param max_seconds: seconds after which a batch without ``until`` reads no more.
    :param idle_seconds: seconds without a new entry after which a batch reads no more.
    :param options: options of the format ``canal-protobuf``.
    """

    destination: str
    connection: str = "canal_default"
    max_entries: int = 1_000_000
    max_seconds: float = 60.0
    idle_seconds: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    reader: ClassVar[str] = "segments"
    format: ClassVar[str] = "canal-protobuf"
    schema_topic: ClassVar[None] = None
    heartbeat_topic: ClassVar[None] = None
    schema_registry: ClassVar[None] = None

    def __post_init__(self) -> None:
        checks = Checks("source")
        if checks.text("destination", self.destination) and not _DESTINATION.fullmatch(self.destination):
            text = "may hold only letters, digits, '_', '-' and '.', at most 100 of them, and not begin with '.'"
            checks.problem("destination", f"{self.destination!r} {text}")
        checks.connection("connection", self.connection)
        checks.integer("max_entries", self.max_entries, least=1)
        for name in ("max_seconds", "idle_seconds"):
            checks.positive(name, getattr(self, name))
        checks.options("options", self.options, home="the connection named by source.connection")
        checks.raise_any()
        object.__setattr__(self, "options", _texts(self.options))

    @property
    def topics(self) -> list[str]:
        """The destination, as the only topic."""
        return [self.destination]

    def data_topics(self, existing: list[str]) -> list[str]:
        """Return the destination, if it is among ``existing``."""
        return [name for name in existing if name == self.destination]

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "type": "canal-tcp",
            "destination": self.destination,
            "connection": self.connection,
            "max_entries": self.max_entries,
            "max_seconds": self.max_seconds,
            "idle_seconds": self.idle_seconds,
            "options": dict(self.options),
        }

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide the content of the tables."""
        return {"type": "canal-tcp", "destination": self.destination, "options": dict(self.options)}


Source = KafkaSource | CanalSource

SOURCES: dict[str, type[KafkaSource] | type[CanalSource]] = {"kafka": KafkaSource, "canal-tcp": CanalSource}
"""Kinds of sources by ``source.type``."""


def _texts(options: dict[str, Any]) -> dict[str, str]:
    """Return options as formats read them; YAML gives numbers and true/false."""
    return {key: as_text(value) for key, value in options.items()}
