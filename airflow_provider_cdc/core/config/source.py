# SPDX-License-Identifier: Apache-2.0
"""Describe the source: topics of a Kafka cluster or in files with the format of their records, or a Canal server."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from airflow_provider_cdc.core.config.checks import Checks, as_text
from airflow_provider_cdc.core.config.lake import check_store
from airflow_provider_cdc.core.file_log.names import TOPIC
from airflow_provider_cdc.core.lake.roots import canonical_root

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

    type: ClassVar[str] = "kafka"
    reader: ClassVar[str] = "kafka"
    spark_reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks = Checks("source")
        names = {name: getattr(self, name) for name in ("schema_topic", "heartbeat_topic", "signal_topic")}
        _check_topics(checks, self.topics, names)
        checks.text("format", self.format)
        checks.connection("connection", self.connection)
        if self.schema_registry is not None:
            checks.connection("schema_registry", self.schema_registry)
        checks.options("options", self.options, home="the connection named by source.connection")
        checks.raise_any()
        object.__setattr__(self, "options", _texts(self.options))
        if not isinstance(self.topics, str):
            object.__setattr__(self, "topics", list(self.topics))

    @property
    def where(self) -> dict[str, str]:
        """Name the place of the log, for errors."""
        return {"connection": self.connection}

    def data_topics(self, existing: list[str]) -> list[str]:
        """Return the topics among ``existing`` that carry rows, sorted; the other topics of the source never do."""
        return _matching(self.topics, existing, {self.schema_topic, self.heartbeat_topic, self.signal_topic})

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

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

    type: ClassVar[str] = "canal-tcp"
    reader: ClassVar[str] = "segments"
    spark_reads: ClassVar[bool] = False
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
    def where(self) -> dict[str, str]:
        """Name the place of the log, for errors."""
        return {"connection": self.connection}

    @property
    def topics(self) -> list[str]:
        """The destination, as the only topic."""
        return [self.destination]

    def data_topics(self, existing: list[str]) -> list[str]:
        """Return the destination, if it is among ``existing``."""
        return [name for name in existing if name == self.destination]

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"type": self.type, **asdict(self)}

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide the content of the tables."""
        return {"type": "canal-tcp", "destination": self.destination, "options": dict(self.options)}


@dataclass(frozen=True)
class FilesSource:
    """Topics in files, in a folder or on an object store: ``<topic>/partition=<n>/<topic>+<n>+<first offset>.jsonl``.

    :param folder: absolute path or address (``s3://``, ``gs://``, ``abfss://``, ``hdfs://``) of what has a folder for
        each topic.
    :param topics: regular expression that must match a topic's whole name, or a list of names.
    :param format: name of the wire format, e.g. ``debezium-json``.
    :param lines: ``records``: each line is a record with its offset, time, key, value and headers, the last three in
        base64; ``values``: each line is a record's value alone, as sinks of Kafka Connect write it.
    :param gaps: ``fail``: a missing offset is an error; ``accept``: the topic lacks offsets itself.
    :param schema_topic: topic with the schema changes, if they do not travel with the rows.
    :param heartbeat_topic: topic whose records prove progress while tables are idle.
    :param schema_registry: Airflow connection of the schema registry whose schemas the records name.
    :param storage_connection: Airflow connection of the object store, with its address and secrets: ``aws``,
        ``google_cloud_platform``, ``wasb`` or ``adls``.
    :param storage_options: further options of the store; no secrets.
    :param options: options of the format; no secrets.
    """

    folder: str
    topics: str | list[str]
    format: str
    lines: str = "records"
    gaps: str = "fail"
    schema_topic: str | None = None
    heartbeat_topic: str | None = None
    schema_registry: str | None = None
    storage_connection: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    type: ClassVar[str] = "files"
    reader: ClassVar[str] = "files"
    spark_reads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checks = Checks("source")
        check_store(checks, self.folder, self.storage_connection, self.storage_options, root_key="folder")
        _check_topics(checks, self.topics, {name: getattr(self, name) for name in ("schema_topic", "heartbeat_topic")})
        if checks.text("format", self.format):
            self._check_lines(checks)
        checks.choice("gaps", self.gaps, ("fail", "accept"))
        if self.schema_registry is not None:
            checks.connection("schema_registry", self.schema_registry)
        checks.options("options", self.options, home="a connection")
        checks.raise_any()
        object.__setattr__(self, "folder", canonical_root(self.folder))
        object.__setattr__(self, "options", _texts(self.options))
        object.__setattr__(self, "storage_options", _texts(self.storage_options))
        if not isinstance(self.topics, str):
            object.__setattr__(self, "topics", list(self.topics))

    def _check_lines(self, checks: Checks) -> None:
        """Check that the format needs no more of a record than its lines have."""
        checks.choice("lines", self.lines, ("records", "values"))
        if self.lines != "values":
            return
        from airflow_provider_cdc.core.formats.registry import FORMATS, reads_values_alone

        if self.format in FORMATS and not reads_values_alone(self.format):
            known = ", ".join(filter(reads_values_alone, FORMATS))
            text = f"values are not all that {self.format} needs of a record; write records, or take one of {known}"
            checks.problem("lines", text)

    @property
    def where(self) -> dict[str, str]:
        """Name the place of the log, for errors."""
        return {"folder": self.folder}

    def data_topics(self, existing: list[str]) -> list[str]:
        """Return the topics among ``existing`` that carry rows, sorted; the other topics of the source never do."""
        return _matching(self.topics, existing, {self.schema_topic, self.heartbeat_topic})

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"type": self.type, **asdict(self)}

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide the content of the tables.

        Whole records are what a Kafka cluster would give: a pipeline may go on with the same topics there.
        """
        decide = ("topics", "format", "schema_topic", "heartbeat_topic", "options")
        document = self.document()
        values = {} if self.lines == "records" else {"lines": self.lines}
        return {**{key: document[key] for key in decide}, **values}


Source = KafkaSource | CanalSource | FilesSource

SOURCES: dict[str, type[KafkaSource] | type[CanalSource] | type[FilesSource]] = {
    kind.type: kind for kind in (KafkaSource, CanalSource, FilesSource)
}
"""Kinds of sources by ``source.type``."""


def _check_topics(checks: Checks, topics: object, special: dict[str, str | None]) -> None:
    """Check which topics carry rows, and the names of those that carry something else, by their keys."""
    if isinstance(topics, str):
        if checks.text("topics", topics):
            try:
                re.compile(topics)
            except re.error as error:
                checks.problem("topics", f"is not a regular expression: {error}")
    elif checks.texts("topics", topics, least=1) and isinstance(topics, list | tuple):
        for index, name in enumerate(topics):
            if not TOPIC.fullmatch(name):
                checks.problem(f"topics[{index}]", f"{name!r} is not a topic name (a list holds no patterns)")
    for key, value in special.items():
        if checks.text(key, value, optional=True) and not TOPIC.fullmatch(str(value)):
            checks.problem(key, f"{value!r} is not a topic name")
    schema, heartbeat, signal = (special.get(key) for key in ("schema_topic", "heartbeat_topic", "signal_topic"))
    if schema is not None and schema == heartbeat:
        checks.problem("heartbeat_topic", "is the schema topic too")
    if signal is not None and signal in (schema, heartbeat):
        checks.problem("signal_topic", "is the schema topic or the heartbeat topic too")


def _matching(topics: str | list[str], existing: list[str], special: set[str | None]) -> list[str]:
    """Return the existing topics that are meant, sorted, without those that carry something else than rows."""
    if isinstance(topics, str):
        pattern = re.compile(topics)
        return sorted(name for name in existing if name not in special and pattern.fullmatch(name))
    return sorted(name for name in topics if name in set(existing) and name not in special)


def _texts(options: dict[str, Any]) -> dict[str, str]:
    """Return options as formats read them; YAML gives numbers and true/false."""
    return {key: as_text(value) for key, value in options.items()}
