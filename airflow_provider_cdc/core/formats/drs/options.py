# SPDX-License-Identifier: Apache-2.0
"""Check the option that DRS's formats have in common, by itself and against the statements of records."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.ddl.tokens import DdlError, Kind
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord

DIALECT = "mysql | oracle (default mysql): the source's dialect of DDL, which no record states"
_DIALECTS = ("mysql", "oracle")


def dialect_of(options: Mapping[str, str]) -> str:
    """Return the dialect of DDL, as :func:`core.ddl.parser.parse` takes it.

    :raises ConfigurationError: the option has another value.
    """
    dialect = options.get("dialect", "mysql")
    if dialect not in _DIALECTS:
        raise ConfigurationError([f"source.options.dialect: {dialect!r} is not one of {', '.join(_DIALECTS)}"])
    return dialect


def demand_dialect(dialect: str, statement: str, table: str | None) -> None:
    """Refuse a statement that cannot be of the dialect that is stated.

    Oracle has no names in backticks, and stores a name without quotes in upper case. MySQL's statements often show that
    they are none of Oracle; Oracle's types park a table that is said to be of MySQL.

    :param table: as the record names it.
    :raises UnsupportedRecord: ``format.option_contradicted``.
    """
    if dialect != "oracle":
        return
    from airflow_provider_cdc.core.ddl.oracle.tokens import tokenize  # its patterns cost 20 ms in every batch

    try:
        tokens = tokenize(statement)
        in_backticks = any(token.word == "`" for token in tokens)
    except DdlError:  # it parks its tables; a name in backticks may have a quote that does not end
        tokens, in_backticks = [], "`" in statement
    unquoted = {token.word for token in tokens if token.kind is Kind.NAME}
    quoted = {token.value for token in tokens if token.kind is Kind.QUOTED}
    typed = table is not None and table != table.upper() and table.upper() in unquoted and table not in quoted
    if typed or in_backticks:
        what = "names in backticks" if in_backticks else "a name in lower case without quotes"
        text = f"the statement has {what}, which Oracle does not: source.options.dialect is mysql"
        raise UnsupportedRecord("format.option_contradicted", text)
