# SPDX-License-Identifier: Apache-2.0
"""Define how a pipeline runs, and its choices where the source leaves one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.config.option_kinds import DECIDING
from airflow_provider_cdc.core.config.platform_kinds import PLATFORMS
from airflow_provider_cdc.core.config.verify import check_verify

_POSITIVE = (
    "apply_bytes", "bucket_rows", "chunk_records", "land_deadline_seconds", "lease_seconds", "log_retention",
    "spark_writer_bytes", "target_file_bytes",
)  # fmt: skip
SPARK_SUBMIT = "spark-submit"
CHOICES: dict[str, tuple[str, ...]] = {
    "engine": ("spark", "inline", "auto"),
    "reader": ("auto", "task", "spark"),
    "writer": ("auto", "task", "spark"),
    "on_add_column": ("apply", "fail", "ask"),
    "on_cascade": ("park", "ignore"),
    "on_contradiction": ("park", "count"),
    "on_convert_column": ("apply", "fail", "ask"),
    "on_create_table": ("apply", "fail", "ask"),
    "on_drop_column": ("apply", "keep", "fail", "ask"),
    "on_drop_table": ("keep", "apply", "fail", "ask"),
    "on_failover": ("ask", "apply", "fail"),
    "on_key_change": ("apply", "fail", "ask"),
    "on_missing_create": ("infer", "park", "fail"),
    "on_rename_column": ("apply", "keep", "fail", "ask"),
    "on_rename_table": ("apply", "fail", "ask"),
    "on_rule_change": ("ask", "apply"),
    "on_truncate": ("apply", "ignore", "fail", "ask"),
    "on_unseen_ddl": ("ask", "apply", "fail"),
    "on_widen_column": ("apply", "fail", "ask"),
    "zero_dates": ("null", "text"),
}


@dataclass(frozen=True)
class RunPolicy:
    """Choices of one pipeline; ``tables.<name>`` overrides those that concern one table.

    :param engine: ``spark``; ``inline``: the same tasks in the worker's own process; ``auto``: ``inline`` for small
        batches where Spark is local.
    :param reader: who reads Kafka: ``task`` (librdkafka), ``spark`` (Spark's source), ``auto``.
    :param writer: who writes tables: ``task`` (delta-rs), ``spark`` (MERGE), ``auto``: by the bytes that a
        merge touches.
    :param quarantine_limit: undecodable records of one table that may wait before the table is parked; the same limit
        holds for its rows that do not fit, and for records of an unknown table, beyond which a batch fails.
    :param on_add_column: ``apply``, ``fail`` the batch, or ``ask``; the same are ``on_create_table``,
        ``on_key_change``, ``on_rename_table``, ``on_widen_column`` (a type with all values of the old one) and
        ``on_convert_column`` (any other type, or NOT NULL).
    :param on_cascade: ``park`` a table whose rows a foreign key changed without row events, or ``ignore`` that.
    :param on_contradiction: ``park`` a table whose rows the log contradicts and nothing explains it, or ``count`` that.
    :param on_drop_column: ``apply``, ``keep`` the column and its values, ``fail`` the batch, or ``ask``.
    :param on_drop_table: ``keep`` the content and mark it dropped, ``apply`` (empty it), ``fail`` the batch, or
        ``ask``: park the table until somebody decides.
    :param on_failover: ``ask`` whether a server that took over has all changes of the one before it, where the source
        lets its log show that; take that for granted (``apply``), or ``fail`` the batch.
    :param on_missing_create: ``infer`` a table without CREATE TABLE from its rows where they state key and types,
        ``park`` it, or ``fail`` the batch.
    :param on_rename_column: ``apply``, ``keep`` the old column next to the new one, ``fail`` the batch, or ``ask``.
    :param on_rule_change: ``ask`` before a table with rows is made again for ``columns``, a ``filter`` or a ``mode``
        that are others now, or ``apply`` them at once.
    :param on_truncate: ``apply``, ``ignore``, ``fail`` the batch, or ``ask``.
    :param on_unseen_ddl: ``ask`` about a new table, or a change of columns, that only rows show in a log without DDL,
        ``apply`` it, or ``fail`` the batch: what the stored rows got by it is in no record.
    :param ddl_grace_seconds: seconds that a table waits for a schema change its rows announce, before it is parked.
    :param batch_records: records of rows from which a request becomes a sequence of batches, each of about so many at
        most; None means any number on a cluster, and on one machine 12,000,000, or 4,000,000 of formats ordered by
        clock.
    :param chunk_records: records one landing task reads.
    :param apply_bytes: bytes of row images of one table that a task holds at once; more are converted and written in
        pieces.
    :param bucket_rows: changes of one table and batch that one task resolves; more are split by key.
    :param parallelism: number of tasks at a time; None leaves it to the engine.
    :param land_deadline_seconds: seconds that one landing task may take from its first request to its last record.
    :param lease_seconds: seconds that a pipeline stays leased after its holder died.
    :param log_retention: days after which ``maintain`` removes what no table needs any more.
    :param target_file_bytes: size up to which ``maintain`` puts small files of a table together.
    :param spark_writer_bytes: bytes of a table's files up to which a merge that touches them is the task writer's;
        above it ``writer: auto`` takes the Spark writer.
    :param tinyint1_as_boolean: TINYINT(1) becomes BOOLEAN; values above 1 are counted as lost.
    :param verify: how far changes are compared with the rows that they find: ``off``; ``touched``: rows that a commit
        reads anyway; ``all``: all values of all of them; ``sample(0.1)``: those of such a share.
    :param zero_dates: zero and invalid dates become ``null``, or the column becomes ``text``.
    """

    engine: str = "spark"
    reader: str = "auto"
    writer: str = "auto"
    quarantine_limit: int = 0
    on_add_column: str = "apply"
    on_cascade: str = "park"
    on_contradiction: str = "park"
    on_convert_column: str = "apply"
    on_create_table: str = "apply"
    on_drop_column: str = "apply"
    on_drop_table: str = "keep"
    on_failover: str = "ask"
    on_key_change: str = "apply"
    on_missing_create: str = "infer"
    on_rename_column: str = "apply"
    on_rename_table: str = "apply"
    on_rule_change: str = "ask"
    on_truncate: str = "apply"
    on_unseen_ddl: str = "ask"
    on_widen_column: str = "apply"
    ddl_grace_seconds: int = 300
    batch_records: int | None = None
    chunk_records: int = 250_000
    apply_bytes: int = 134_217_728
    bucket_rows: int = 1_000_000
    parallelism: int | None = None
    land_deadline_seconds: int = 600
    lease_seconds: int = 60
    log_retention: int = 30
    target_file_bytes: int = 134_217_728
    spark_writer_bytes: int = 68_719_476_736
    tinyint1_as_boolean: bool = False
    verify: str = "touched"
    zero_dates: Literal["null", "text"] = "null"

    def __post_init__(self) -> None:
        checks = Checks("policy")
        if self.zero_dates is None:  # YAML reads an unquoted null as nothing
            object.__setattr__(self, "zero_dates", "null")
        verify: object = self.verify
        if verify is False:  # as it reads an unquoted off
            object.__setattr__(self, "verify", "off")
        check_verify(checks, self.verify)
        for name, known in CHOICES.items():
            checks.choice(name, getattr(self, name), known)
        for name in ("quarantine_limit", "ddl_grace_seconds"):
            checks.integer(name, getattr(self, name))
        for name in _POSITIVE:
            checks.integer(name, getattr(self, name), least=1)
        for name in ("batch_records", "parallelism"):
            checks.integer(name, getattr(self, name), least=1, optional=True)
        checks.flag("tinyint1_as_boolean", self.tinyint1_as_boolean)
        for name in ("reader", "writer"):
            if self.engine == "inline" and getattr(self, name) == "spark":
                checks.problem(name, "spark needs engine: spark")
        checks.raise_any()

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    def deciding(self) -> dict[str, Any]:
        """Return the choices that change the content of tables."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name in DECIDING}


@dataclass(frozen=True)
class SparkSettings:
    """Settings of the Spark application.

    :param connection: Airflow connection of type ``spark``, or of the platform's type; None means ``local[*]``, or the
        platform's default connection.
    :param conf: Spark configuration; no secrets.
    :param keep_seconds: how long ``airflow-cdc serve`` keeps an application of its machine for the next batch; 0 ends
        it with each batch.
    :param python: interpreter of Spark's driver and workers; None means the worker's own.
    :param submit: what starts the application: ``spark-submit``, or a platform (``platform_kinds.PLATFORMS``).
    :param run: the platform's own document of a run, to which the batch's job is added; no secrets.
    """

    connection: str | None = None
    conf: dict[str, Any] = field(default_factory=dict)
    keep_seconds: int = 300
    python: str | None = None
    submit: str = SPARK_SUBMIT
    run: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks = Checks("spark")
        checks.connection("connection", self.connection, optional=True)
        checks.text("python", self.python, optional=True)
        checks.options("conf", self.conf, home="an Airflow connection")
        checks.integer("keep_seconds", self.keep_seconds)
        checks.choice("submit", self.submit, (SPARK_SUBMIT, *PLATFORMS))
        if (
            checks.plain_document("run", self.run, home="the platform's own secrets")
            and self.run
            and not self.elsewhere
        ):
            checks.problem("run", "describes the run of a platform: state submit, too")
        checks.raise_any()
        object.__setattr__(self, "conf", dict(self.conf))

    @property
    def elsewhere(self) -> bool:
        """Return whether a platform runs the batches."""
        return self.submit != SPARK_SUBMIT

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        platform = {"submit": self.submit, "run": self.run} if self.elsewhere else {}
        own = {"connection": self.connection, "conf": dict(self.conf), "python": self.python}
        return {**own, "keep_seconds": self.keep_seconds, **platform}
