# SPDX-License-Identifier: Apache-2.0
"""Run ``postgres``: print, install or remove what lets a PostgreSQL database write its DDL into its log."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from airflow_provider_cdc.commands.output import DONE
from airflow_provider_cdc.connections.lookup import postgres_url
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.sources.ddl_triggers import (
    DEFAULT_BEAT,
    DEFAULT_LOG,
    QualifiedName,
    heartbeat_sql,
    install_sql,
    qualified,
    uninstall_sql,
)

_CHOICES = "--print, --install, --uninstall or --heartbeat-query"


def postgres(args: Namespace) -> int:
    """Print the SQL of the event triggers or of the heartbeat, or run it over a connection."""
    modes = [args.print_sql, args.install is not None, args.uninstall is not None, args.heartbeat_query]
    if sum(modes) != 1:
        raise ConfigurationError([f"postgres {args.action} takes one of {_CHOICES}"])
    table = qualified(args.table or (DEFAULT_BEAT if args.heartbeat_query else DEFAULT_LOG))
    if args.print_sql:
        print("\n".join(install_sql(table)), end="")
    elif args.heartbeat_query:
        print("\n".join(_heartbeat(table)))
    elif args.install is not None:
        _run(args.install, install_sql(table))
        print(f"each DDL is written to {table.schema}.{table.table}: capture it, and name its topic in")
        print("source.schema_topic")
    else:
        _run(args.uninstall, [uninstall_sql(table)])
        print(f"the triggers are gone, and {table.schema}.{table.table} with them")
    return DONE


def _heartbeat(table: QualifiedName) -> list[str]:
    create, query = heartbeat_sql(table)
    return [
        "-- once, at the source:",
        create.rstrip(),
        "-- settings of the connector; the table must be captured, and its topic be one of source.topics:",
        f"-- state it, where it is another one than {DEFAULT_BEAT}: source.options.heartbeat_table",
        "-- heartbeat.interval.ms=10000",
        f"-- heartbeat.action.query={query}",
    ]


def _run(conn_id: str, statements: Sequence[str]) -> None:
    """Run statements over an Airflow connection, each alone: the last one commits by itself.

    :raises ConfigurationError: psycopg is missing, or the login may not do it.
    :raises UnavailableError: the server cannot be reached.
    """
    psycopg = _psycopg()
    where = {"connection": conn_id}
    try:
        with psycopg.connect(postgres_url(conn_id), autocommit=True, application_name="airflow-cdc") as connection:
            for statement in statements:
                connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        said = f"{_first_line(error)}: only a superuser, or what your provider has instead of one, makes event triggers"
        raise ConfigurationError([said], where=where) from None
    except psycopg.OperationalError as error:
        text, hint = f"the server cannot be asked: {_first_line(error)}", "check the connection, then run again"
        raise UnavailableError("postgres.unreachable", text, where=where, hint=hint) from None
    except psycopg.Error as error:
        raise ConfigurationError([f"the server refuses: {_first_line(error)}"], where=where) from None


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        text = "psycopg is not installed: pip install 'airflow-provider-cdc[postgres]', or --print and psql"
        raise ConfigurationError([text]) from None
    return psycopg


def _first_line(error: Exception) -> str:
    """Return what the server says, with its hint."""
    diagnosis = getattr(error, "diag", None)
    hint = getattr(diagnosis, "message_hint", None)
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{text} ({hint})" if hint else text
