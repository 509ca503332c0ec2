"""What librdkafka's errors mean for us: try again, change the configuration, or mend the source."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, SourceError, UnavailableError

_LOGIN = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"}
_SETTINGS = {"_INVALID_ARG", "_SSL", "_CRIT_SYS_RESOURCE", "_UNSUPPORTED_FEATURE", "_NOT_IMPLEMENTED"}
_RIGHTS = {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"}
UNKNOWN = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "TOPIC_EXCEPTION", "UNKNOWN_TOPIC_ID"}
_RANGE = {"OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET"}
FATAL = _LOGIN | {"_SSL"}
"""Errors that waiting for the broker does not mend."""


def explained(name: str, text: str, conn_id: str, where: dict[str, Any] | None = None) -> CdcError:
    """Return our error for one of librdkafka's.

    :param name: symbolic name, e.g. ``_TRANSPORT``.
    :param text: librdkafka's sentence; it names brokers and topics, never passwords.
    """
    where = {"connection": conn_id, **(where or {})}
    error: CdcError
    if name in _LOGIN:
        error = ConfigurationError([f"connection {conn_id}: Kafka refuses the login: {text}"], where=where)
        error.hint = "check sasl.mechanism, sasl.username and sasl.password of the connection"
    elif name in _SETTINGS:
        error = ConfigurationError([f"connection {conn_id}: {text}"], where=where)
        error.hint = "check the connection's extra; security.protocol, ssl.* and sasl.* must fit the broker's listener"
    elif name in _RIGHTS:
        hint = "grant Describe and Read on the topics; no right on a group is needed"
        error = SourceError("kafka.not_allowed", f"Kafka does not let us: {text}", where=where, hint=hint)
    elif name in UNKNOWN:
        error = SourceError("kafka.topic_unknown", text, where=where, hint="check source.topics and the connection")
    elif name in _RANGE:
        hint = "the log was cut while it was read; run again to learn what is lost"
        error = SourceError("kafka.offset_out_of_range", text, where=where, hint=hint)
    else:
        hint = "check the addresses in bootstrap.servers, the network and the listener's security.protocol"
        error = UnavailableError("kafka.unavailable", f"Kafka does not answer: {text}", where=where, hint=hint)
    return error
