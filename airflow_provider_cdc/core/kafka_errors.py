# SPDX-License-Identifier: Apache-2.0
"""Convert librdkafka's errors to ours: retry, correct the configuration, or correct the source."""

from __future__ import annotations

from typing import Any, Protocol

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, SourceError, UnavailableError

_LOGIN = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"}
_SETTINGS = {"_INVALID_ARG", "_SSL", "_CRIT_SYS_RESOURCE", "_UNSUPPORTED_FEATURE", "_NOT_IMPLEMENTED"}
_RIGHTS = {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"}
UNKNOWN = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "TOPIC_EXCEPTION", "UNKNOWN_TOPIC_ID"}
RANGE = {"OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET"}
SILENCE = {"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE"}
"""Errors that state only that no broker answered."""

_SIZE = "receive.message.max.bytes"
_KEPT = 20


def is_refused(name: str) -> bool:
    """Return whether an error of Kafka, by its name, says that the login lacks a right."""
    return name in _RIGHTS


def explained(name: str, text: str, conn_id: str = "", where: dict[str, Any] | None = None) -> CdcError:
    """Return the CdcError for an error of librdkafka.

    :param name: symbolic name, e.g. ``_TRANSPORT``.
    :param text: librdkafka's sentence; it names brokers and topics, never passwords.
    :param conn_id: the Airflow connection; empty where it is not known.
    """
    where = {**({"connection": conn_id} if conn_id else {}), **(where or {})}
    connection = f"connection {conn_id}" if conn_id else "the Kafka connection"
    error: CdcError
    if name in _LOGIN:
        hint = "check sasl.mechanism, sasl.username and sasl.password of the connection"
        if "oauth" in text.lower():
            hint = "check sasl.oauthbearer.* of the connection"
        error = SourceError("kafka.login_refused", f"Kafka refuses the login: {text}", where=where, hint=hint)
    elif _too_large(name, text):
        error = ConfigurationError([f"{connection}: a record is larger than {_SIZE}: {text}"], where=where)
        error.hint = f"raise {_SIZE} in the connection's extra above the size that the message names"
    elif name == "_BAD_COMPRESSION":
        error = ConfigurationError(
            [f"{connection}: a compressed batch of records cannot be unpacked: {text}"], where=where
        )
        error.hint = f"raise {_SIZE} in the connection's extra above the size of a producer's batch before compression"
    elif name in _SETTINGS:
        error = ConfigurationError([f"{connection}: {text}"], where=where)
        error.hint = "check the connection's extra; security.protocol, ssl.* and sasl.* must fit the broker's listener"
    elif name in _RIGHTS:
        hint = "grant Describe and Read on the topics; no right on a group is needed"
        error = SourceError("kafka.not_allowed", f"Kafka does not let us: {text}", where=where, hint=hint)
    elif name in UNKNOWN:
        error = SourceError("kafka.topic_unknown", text, where=where, hint="check source.topics and the connection")
    elif name in RANGE:
        hint = "the log was truncated while it was read; run again to learn what is lost"
        error = SourceError("kafka.offset_out_of_range", text, where=where, hint=hint)
    else:
        hint = "check the addresses in bootstrap.servers, the network and the listener's security.protocol"
        error = UnavailableError("kafka.unavailable", f"Kafka does not answer: {text}", where=where, hint=hint)
    return error


def _too_large(name: str, text: str) -> bool:
    return name == "_BAD_MSG" and _SIZE in text


class Problem(Protocol):
    """The part of confluent-kafka's ``KafkaError`` that is used."""

    def name(self) -> str:
        """Return the symbolic name."""

    def str(self) -> str:
        """Return the sentence."""


class Complaints:
    """Collect librdkafka's own reports as reasons for errors, instead of lines on stderr.

    :param conn_id: the Airflow connection; empty where it is not known.
    """

    def __init__(self, conn_id: str = "") -> None:
        self.conn_id = conn_id
        self._noted: list[tuple[str, str]] = []

    def settings(self) -> dict[str, Any]:
        """Return the settings of a client whose reports are collected from now on."""
        self.clear()
        return {"error_cb": self._note, "log_level": 0}

    def clear(self) -> None:
        """Drop the collected reports."""
        self._noted.clear()

    @property
    def lasting(self) -> CdcError | None:
        """Return the reported error that waiting for the broker does not end, if any."""
        report = self._lasting()
        return None if report is None else explained(*report, self.conn_id)

    def problem(self, error: Problem, where: dict[str, Any] | None = None) -> CdcError:
        """Return the CdcError for an error of a call.

        If it states only that no broker answered, an earlier report gives the reason.
        """
        report = self._lasting()
        if report is None and error.name() in SILENCE:
            report = self._last()
        name, text = report or (error.name(), error.str())
        return explained(name, text, self.conn_id, where)

    @property
    def reason(self) -> str:
        """Return the last report as a sentence; empty if there was none."""
        report = self._lasting() or self._last()
        return "" if report is None else report[1]

    def _lasting(self) -> tuple[str, str] | None:
        return next((note for note in self._noted if note[0] in _LOGIN | {"_SSL"} or _too_large(*note)), None)

    def _last(self) -> tuple[str, str] | None:
        return next((note for note in reversed(self._noted) if note[0] != "_ALL_BROKERS_DOWN"), None)

    def _note(self, error: Problem) -> None:
        self._noted.append((error.name(), error.str()))
        del self._noted[:-_KEPT]
