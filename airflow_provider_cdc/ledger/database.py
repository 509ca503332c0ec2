# SPDX-License-Identifier: Apache-2.0
"""Connect to the ledger's database: one transaction at a time, its clock, and its errors explained."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import create_engine, event, exc, insert, inspect, pool, select, text
from sqlalchemy.engine import URL, Connection, Engine, make_url

from airflow_provider_cdc.core.errors import (
    CdcError,
    ConfigurationError,
    KnownValuesError,
    LedgerError,
    UnavailableError,
)
from airflow_provider_cdc.core.json_documents import json_text
from airflow_provider_cdc.ledger import schema

BUSY_SECONDS = 30
# Whoever only looks would rather have an error than wait: connecting, a lock of SQLite, a statement of PostgreSQL.
_READER_CONNECT_SECONDS = 3
_READER_BUSY_SECONDS = 3
_READER_STATEMENT_SECONDS = 10
_BEGIN_AGAIN = "state an empty database, and the next run takes over what the lake knows"
_CREATE_LOCK = 0x63646331  # any constant: serialises the first start on PostgreSQL
# Airflow 3.1's constraints have SQLAlchemy 1.4, which does not know psycopg 3
_POSTGRESQL = "postgresql+psycopg2" if sqlalchemy.__version__.startswith("1.") else "postgresql+psycopg"
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": _POSTGRESQL,
    "postgres": _POSTGRESQL,
    "postgresql+psycopg": _POSTGRESQL,
}
_NOW = {
    "sqlite": "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')",
    # Not now(): that is the transaction's start, which may be long before a lock was granted.
    "postgresql": "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')",
}
# SQLite's words for SQLITE_CORRUPT, and for tables that somebody removed.
_DAMAGE = ("malformed", "no such table", "no such column")
_DAMAGED_STATES = ("XX001", "XX002")  # PostgreSQL: data_corrupted, index_corrupted
_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, exc.NoResultFound, exc.MultipleResultsFound)
_NUL = "cannot contain NUL"  # psycopg2's ValueError
_REFUSALS = (
    "password authentication failed",
    "no password supplied",
    "no pg_hba.conf entry",
    "does not exist",
    "permission denied",
    "readonly database",
    "not a database",
)


def now(connection: Connection) -> datetime:
    """Return the database's time, so that leases do not depend on the clocks of workers."""
    moment = connection.execute(text(_NOW[connection.dialect.name])).scalar_one()
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


class Database:
    """Connections of one ledger; each transaction opens its own, so forks and threads share nothing.

    :param url: ``sqlite:////path/file.db`` or ``postgresql://…``.
    :param read_only: create and write nothing; give up after seconds where others wait for half a minute.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._url = _checked(url)
        self.shown = self._url.render_as_string(hide_password=True)
        self._read_only = read_only
        self._engine: Engine | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one consistent read."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open one transaction that commits at exit and rolls back on any error."""
        with self._transaction(writes=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        with self._explained():
            if self._engine is None:
                self._engine = _opened(self._url) if self._read_only else _started(self._url)
            options: dict[str, Any] = {"cdc_writes": writes}
            if self._engine.dialect.name == "postgresql" and (self._read_only or not writes):
                options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            with self._engine.connect().execution_options(**options) as connection, connection.begin():
                yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except CdcError:
            raise
        except (exc.SQLAlchemyError, ValueError) as error:  # psycopg2 refuses a text with NUL so
            raise _explained(error, self._url, {"ledger": self.shown}) from None


def _explained(error: Exception, url: URL, where: dict[str, Any]) -> CdcError:
    """Return the CdcError for an error of SQLAlchemy, of the driver, or of a stored document."""
    reason = _reason(error, url)
    if any(words in reason for words in _REFUSALS):
        return ConfigurationError([f"the ledger's database rejects the connection: {reason}"], where=where)
    cause = getattr(error, "orig", None)
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)  # psycopg's name, psycopg2's name
    if isinstance(error, _UNREADABLE) or state in _DAMAGED_STATES or any(words in reason for words in _DAMAGE):
        return LedgerError(
            "ledger.damaged", f"the ledger's database is damaged: {reason}", where=where,
            hint="stop the pipeline's runs and restore the database from a backup",
        )  # fmt: skip
    if isinstance(error, (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)):
        return UnavailableError(
            "ledger.unavailable", f"the ledger's database does not answer: {reason}", where=where,
            hint="check that it runs, can be reached from here and has free space",
        )  # fmt: skip
    if isinstance(error, (exc.DataError, UnicodeError)) or _NUL in reason:
        return LedgerError(
            "ledger.value_refused", f"the ledger's database cannot hold a name or a document: {reason}", where=where,
            hint="a name in the log has characters that this database rejects; leave its table out with tables.exclude",
        )  # fmt: skip
    return LedgerError(
        "ledger.fault", f"the ledger's database rejects a statement: {type(error).__name__}: {reason}", where=where,
        hint="check that nobody changed its tables; otherwise report this with the version of the release",
    )  # fmt: skip


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        # The text may contain a password: do not repeat it.
        raise ConfigurationError(["ledger: is not a database URL such as sqlite:////data/cdc.db"]) from None
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        raise KnownValuesError("ledger database", parsed.drivername, ["sqlite", "postgresql"])
    parsed = parsed.set(drivername=driver)
    if driver == "sqlite" and (parsed.database or ":memory:").startswith((":memory:", "file:")):
        raise ConfigurationError(["ledger: must be a file; a database in memory is gone with its process"])
    return parsed


def _reason(error: Exception, url: URL) -> str:
    """Return the first line of the driver's message, without the password, statement, parameters and documents."""
    if isinstance(error, UnicodeError):
        return f"{type(error).__name__}: {error.reason}" if hasattr(error, "reason") else type(error).__name__
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    reason = lines[0] if lines else type(cause).__name__
    return reason.replace(url.password, "***") if url.password else reason


def _started(url: URL) -> Engine:
    """Connect for the first time and create missing tables."""
    arguments: dict[str, Any] = {"connect_timeout": 10}
    if url.drivername == "sqlite":
        arguments = {"timeout": BUSY_SECONDS}
        with suppress(OSError):  # connecting reports the problem
            Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = _engine(url, connect_args=arguments)
    event.listen(engine, "begin", _begin)
    if url.drivername == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
    with engine.connect().execution_options(cdc_writes=True) as connection, connection.begin():
        _create(connection)
    return engine


def _opened(url: URL) -> Engine:
    """Connect without creating or changing anything.

    :raises LedgerError: the tables are not there, or another release made them.
    """
    if url.drivername == "sqlite":
        path = Path(str(url.database)).absolute()
        with suppress(OSError):  # connecting reports the problem
            if not path.exists():
                raise _missing("there is no such file")
        file = path.as_uri()
        arguments: dict[str, Any] = {"uri": True, "timeout": _READER_BUSY_SECONDS, "check_same_thread": False}
        engine = _engine(url, creator=lambda: sqlite3.connect(f"{file}?mode=ro", **arguments))
    else:
        engine = _engine(url, connect_args={"connect_timeout": _READER_CONNECT_SECONDS})
    event.listen(engine, "begin", _begin_reading)
    if url.drivername == "sqlite":
        event.listen(engine, "connect", _leave_transactions_to_begin)
    with engine.connect() as connection, connection.begin():
        _check_version(connection)
    return engine


def _engine(url: URL, **options: Any) -> Engine:
    try:
        return create_engine(url, poolclass=pool.NullPool, json_serializer=json_text, **options)
    except ModuleNotFoundError as error:
        raise ConfigurationError([f"ledger: the database's driver {error.name!r} is not installed"]) from None


def _leave_transactions_to_begin(connection: sqlite3.Connection, _record: object) -> None:
    """Let transactions begin in the listener, not where the driver guesses."""
    connection.isolation_level = None


def _begin_reading(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")
    else:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{_READER_STATEMENT_SECONDS}s'")


def _check_version(connection: Connection) -> None:
    if not inspect(connection).has_table(schema.versions.name):
        raise _missing("the database has no tables of a ledger")
    version = connection.execute(select(schema.versions.c.version)).scalar()
    if version != schema.VERSION:
        raise LedgerError(
            "ledger.version",
            f"the ledger's tables have version {version}, this release knows version {schema.VERSION}",
            hint=_BEGIN_AGAIN,
        )


def _missing(reason: str) -> LedgerError:
    return LedgerError("ledger.missing", f"there is no ledger yet: {reason}", hint="the first batch creates it")


def _prepare_sqlite(connection: sqlite3.Connection, record: object) -> None:
    _leave_transactions_to_begin(connection, record)
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            # WAL allows readers during a write. Changing the mode does not wait for locks as other statements do.
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        # A deferred transaction that reads first and writes later fails if another one wrote in between;
        # IMMEDIATE waits for the lock instead.
        writes = connection.get_execution_options().get("cdc_writes", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _create(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATE_LOCK})
    schema.metadata.create_all(connection)
    version = connection.execute(select(schema.versions.c.version)).scalar()
    if version is None:
        _mark(connection)
    elif version != schema.VERSION:
        raise ConfigurationError(
            [f"ledger: its tables have version {version}, this release knows version {schema.VERSION}: {_BEGIN_AGAIN}"]
        )


def _mark(connection: Connection) -> None:
    """Insert the tables' version and the ledger's id."""
    connection.execute(insert(schema.versions).values(version=schema.VERSION, ledger_id=uuid.uuid4().hex))
