# SPDX-License-Identifier: Apache-2.0
"""Errors: one root with a stable code, and two mix-ins that decide whether trying again helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from airflow_provider_cdc.core.printable import printable, printable_lines


class CdcError(Exception):
    """Something this provider refuses or could not do.

    :param code: stable, machine readable name, e.g. ``kafka.topic_unknown``.
    :param message: one sentence, without row values and without secrets.
    :param where: place of the problem: topic, partition, offset, table, position, ...
    :param hint: what to do next.
    :ivar details: further members of the document, for programs.
    """

    def __init__(self, code: str, message: str, *, where: dict[str, Any] | None = None, hint: str = "") -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.where = dict(where or {})
        self.hint = hint
        self.details: dict[str, Any] = {}

    @property
    def headline(self) -> str:
        """Code and message, without location and hint."""
        return f"[{printable(self.code)}] {printable_lines(self.message)}"

    @property
    def location(self) -> str:
        """Members of ``where`` as text."""
        return printable(", ".join(f"{name}={value}" for name, value in self.where.items()))

    def __str__(self) -> str:
        parts = [self.headline]
        if self.where:
            parts.append(f"({self.location})")
        if self.hint:
            parts.append(f"-> {printable(self.hint)}")
        return " ".join(parts)

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.__dict__)

    def document(self) -> dict[str, Any]:
        """Return the error as plain JSON data."""
        return {"code": self.code, "message": self.message, "where": self.where, "hint": self.hint, **self.details}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Rebuild the error that :meth:`document` describes, as an error of this class."""
        rest = dict(document)
        attributes: dict[str, Any] = {name: str(rest.pop(name, None) or "") for name in ("code", "message", "hint")}
        error: Self = _rebuild(cls, {**attributes, "where": dict(rest.pop("where", None) or {}), "details": rest})
        return error


def _rebuild(kind: type[CdcError], attributes: dict[str, Any]) -> Any:
    error = kind.__new__(kind)
    Exception.__init__(error, attributes.get("code"), attributes.get("message"))
    error.__dict__.update(attributes)
    return error


class Transient:
    """Mix-in: the same call may succeed later."""


class Terminal:
    """Mix-in: the same call fails again until somebody changes something."""


class ConfigurationError(Terminal, CdcError):
    """A pipeline that cannot work as it is written; lists every problem at once.

    :param problems: one sentence each.
    """

    def __init__(self, problems: Sequence[str], *, where: dict[str, Any] | None = None) -> None:
        self.problems = list(problems)
        text = (
            self.problems[0]
            if len(self.problems) == 1
            else "; ".join(f"({i}) {p}" for i, p in enumerate(self.problems, 1))
        )
        super().__init__("configuration", text, where=where)


def concerns_configuration(error: CdcError) -> bool:
    """Return whether the pipeline or a connection has to be corrected; by its code: errors may come from a document."""
    of_settings = error.code == "configuration" or error.code.endswith(".unknown")
    return of_settings or error.code in ("kafka.login_refused", "kafka.topic_unknown", "kafka.not_allowed")


class DataError(Terminal, CdcError):
    """The data itself cannot be carried as it stands."""


class SourceError(Terminal, CdcError):
    """The log cannot give what the batch needs (topic gone, offsets expired, end beyond the log)."""


NEW_GENERATION = "source.new_generation"
"""Code of a :class:`DataError`: the source's log began again, and an operator has to decide whether it may go on."""

SECOND_LOG = "source.second_log"
"""Code of a :class:`DataError`: a batch has records of two logs. It was not landed."""

CASCADED = "apply.cascaded"
"""Code of a parked table (``TableState.code``): a foreign key changed its rows without row events."""

CASCADED_ABOVE = "apply.cascaded_above"
"""Code of a parked table that refers to one with :data:`CASCADED`; which of its own rows changed is not known."""

CHANGES_MISSING = "apply.changes_missing"
"""Beginning of a parked table's reason: the log counts changes of the table that it does not have."""

LOG_LOST = {
    "kafka.offsets_expired",
    "kafka.end_beyond_log",
    "kafka.topic_recreated",
    "kafka.topic_unknown",
    "files.gone",
}
"""Codes of a :class:`SourceError` at landing: the log no longer has the records of the batch's range."""


REBUILD = "rebuild it from the change log with `airflow-cdc rebuild PIPELINE.yaml DATABASE.TABLE`"
"""End of a hint: the change log has what a table's location has lost."""


class SinkError(Terminal, CdcError):
    """A table differs from the state in the ledger, or was not created by this project."""


class LedgerError(Terminal, CdcError):
    """The ledger's database is damaged, or cannot hold what it is given."""


class BusyError(Transient, CdcError):
    """Somebody else works on this pipeline now."""


class UnavailableError(Transient, CdcError):
    """A broker, a database, a store or Spark did not answer as it should."""


def first_line(error: BaseException) -> str:
    """Return the class and the first line of an error of others, without the lines of advice that some add."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"


def out_of_memory(code: str, what: str, where: dict[str, Any]) -> DataError:
    """Return the error of a task that ran out of memory.

    :param what: what did not fit.
    """
    return DataError(
        code, f"{what} did not fit into the task's memory", where=where,
        hint="give Spark's workers or the machine more memory, lower policy.parallelism or policy.apply_bytes, or sync "
        "a smaller range first with --until; then run again",
    )  # fmt: skip


class KnownValuesError(Terminal, CdcError):
    """A name that is not known; the hint lists the known names."""

    def __init__(self, what: str, name: str, known: Sequence[str]) -> None:
        self.known = sorted(known)
        super().__init__(
            f"{what.replace(' ', '_')}.unknown",
            f"unknown {what} {name!r}",
            hint=f"known: {', '.join(self.known) or 'none'}",
        )


def error_members(error: CdcError) -> dict[str, Any]:
    """Return the members with which a document states an error, and whether the same may succeed later."""
    return {"error": error.document(), "transient": isinstance(error, Transient)}


def error_in(data: Mapping[str, Any]) -> CdcError | None:
    """Rebuild the error that a document states (:func:`error_members`), None without one."""
    if data.get("error") is None:
        return None
    kind = UnavailableError if data.get("transient") else DataError
    return kind.from_document(data["error"])
