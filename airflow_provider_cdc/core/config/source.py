# SPDX-License-Identifier: Apache-2.0
"""Describe the source: topics of a Kafka cluster and the format of their records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class KafkaSource:
    """Topics that carry one pipeline's changes.

    :param topics: regular expression that must match a topic's whole name, or a list of names.
    :param format: name of the wire format, e.g. ``debezium-json``.
    :param connection: Airflow connection of type ``kafka``; addresses and secrets live there only.
    :param schema_topic: topic with the schema changes, if they do not travel with the rows.
    :param heartbeat_topic: topic whose records prove progress while tables are idle.
    :param options: options of the format; no secrets.
    """

    topics: str | list[str]
    format: str
    connection: str = "kafka_default"
    schema_topic: str | None = None
    heartbeat_topic: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks = Checks("source")
        self._check_topics(checks)
        checks.text("format", self.format)
        checks.connection("connection", self.connection)
        for name in ("schema_topic", "heartbeat_topic"):
            value = getattr(self, name)
            if checks.text(name, value, optional=True) and not _TOPIC.fullmatch(value):
                checks.problem(name, f"{value!r} is not a topic name")
        if self.schema_topic is not None and self.schema_topic == self.heartbeat_topic:
            checks.problem("heartbeat_topic", "is the schema topic too")
        checks.options("options", self.options, home="the connection named by source.connection")
        checks.raise_any()
        # Formats read text; YAML gives numbers and true/false.
        texts = {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self.options.items()
        }
        object.__setattr__(self, "options", texts)
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
        """Return the topics among ``existing`` that carry rows, sorted; schema and heartbeat topic never do."""
        special = {self.schema_topic, self.heartbeat_topic}
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
            "options": dict(self.options),
        }
