# SPDX-License-Identifier: Apache-2.0
"""Demand encryption between Spark's processes: tasks carry secrets to executors."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.documents.job import ALLOW_UNENCRYPTED
from airflow_provider_cdc.core.errors import ConfigurationError

_CIPHERS = ("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption")
RELEVANT = ("spark.master", "spark.authenticate", "spark.ssl.rpc.enabled", *_CIPHERS, ALLOW_UNENCRYPTED)
"""Keys of Spark's configuration that decide."""


def demand_encryption(conf: Mapping[str, str], secrets: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse to send secrets through a cluster whose processes talk to each other in the clear.

    :param conf: Spark's effective configuration, with the defaults of the cluster.
    :raises ConfigurationError: nothing encrypts, and nobody accepted that.
    """
    if conf.get("spark.master", "").startswith("local") or not any(secrets.values()):
        return
    if _on(conf, ALLOW_UNENCRYPTED) or _encrypted(conf):
        return
    error = ConfigurationError(
        [f"spark.conf: secrets would travel unencrypted to the executors of {conf.get('spark.master')}"]
    )
    error.hint = (
        "set spark.authenticate and spark.network.crypto.enabled to true (or spark.ssl.rpc.enabled), in spark.conf or "
        f"the cluster's defaults; on a network that you trust set {ALLOW_UNENCRYPTED}: true in spark.conf instead"
    )
    raise error


def _encrypted(conf: Mapping[str, str]) -> bool:
    """Return whether Spark encrypts RPC (Spark's manual, Security: SSL, or authentication with AES or SASL)."""
    aes = _on(conf, "spark.authenticate") and any(_on(conf, key) for key in _CIPHERS)
    return aes or _on(conf, "spark.ssl.rpc.enabled")


def _on(conf: Mapping[str, str], key: str) -> bool:
    return conf.get(key, "false").strip().lower() == "true"
