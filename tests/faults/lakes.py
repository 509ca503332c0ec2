# SPDX-License-Identifier: Apache-2.0
"""Stores that lakes lie in, each behind something that fails as it does, by the schemes of their addresses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from airflow_provider_cdc.connections.lookup import storage_options
from tests.faults.name_node import FailingNameNode
from tests.faults.store import FailingServer, FailingStore
from tests.services.azurite import Azurite
from tests.services.google_storage import google_storage
from tests.services.s3 import S3
from tests.services.yarn import YarnCluster

_CONNECTION = "fault_store"
_VARIABLE = f"AIRFLOW_CONN_{_CONNECTION.upper()}"


@dataclass(frozen=True)
class Address:
    """Say how a store is reached.

    :param connection: empty where it needs none.
    :param options: storage options of a pipeline's file.
    :param safe_names: whether its paths take no others.
    """

    root: str
    connection: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    safe_names: bool = False

    def section(self) -> dict[str, Any]:
        """Return what stands below ``sink`` in a pipeline's file."""
        connection = {"storage_connection": _CONNECTION} if self.connection else {}
        names = {"names": "safe"} if self.safe_names else {}
        return {**connection, **names, "storage_options": dict(self.options)}

    def environment(self) -> dict[str, str]:
        """Return the variables with the connection."""
        return {_VARIABLE: json.dumps(self.connection)} if self.connection else {}

    def storage_options(self) -> dict[str, str]:
        """Return what a reader needs, as a pipeline gives it to its sink."""
        with patch.dict(os.environ, self.environment()):
            return {**storage_options(_CONNECTION if self.connection else None), **self.options}


@dataclass(frozen=True)
class Lake:
    """A store for the lakes of rounds.

    :param failing: what stands before it.
    :param address: how pipelines reach it.
    :param direct: how this process does: a reader that holds the interpreter would wait for the proxy in it for ever.
    """

    failing: FailingServer
    address: Address
    direct: Address


def _before(service: str, address: Callable[[str], Address], stack: ExitStack) -> Lake:
    failing = FailingStore(service)
    stack.callback(failing.stop)
    return Lake(failing, address(failing.endpoint), address(service))


def _s3(stack: ExitStack, folder: Path) -> Lake:
    service = stack.enter_context(S3())
    root = service.create_bucket("lake")

    def address(endpoint: str) -> Address:
        extra = {"endpoint_url": endpoint, "region_name": S3.region}
        connection = {"conn_type": "aws", "login": S3.access_key, "password": S3.secret_key, "extra": extra}
        return Address(root, connection, {"aws_conditional_put": "etag"})

    return _before(service.endpoint, address, stack)


def _google(stack: ExitStack, folder: Path) -> Lake:
    service = stack.enter_context(S3())
    service.create_bucket("lake")
    key = stack.enter_context(google_storage(service, folder))

    def address(endpoint: str) -> Address:
        extra = {"keyfile_dict": json.dumps({**key, "gcs_base_url": endpoint}), "project": "p"}
        connection = {"conn_type": "google_cloud_platform", "extra": extra}
        return Address("gs://lake", connection, {"allow_http": "true"})

    return _before(key["gcs_base_url"], address, stack)


def _azure(stack: ExitStack, folder: Path) -> Lake:
    service = stack.enter_context(Azurite())
    root, path = service.create_container("lake"), f"/{service.account}"

    def address(endpoint: str) -> Address:
        login = {"login": service.account, "password": service.key, "host": endpoint + path}
        return Address(root, {"conn_type": "wasb", **login})

    return _before(service.endpoint.removesuffix(path), address, stack)


def _hdfs(stack: ExitStack, folder: Path) -> Lake:
    cluster = stack.enter_context(YarnCluster(nodes=0))
    failing = FailingNameNode(cluster.hdfs.removeprefix("hdfs://"))
    stack.callback(failing.stop)
    failed, direct = (Address(f"{root}/lake", safe_names=True) for root in (f"hdfs://{failing.address}", cluster.hdfs))
    return Lake(failing, failed, direct)


LAKES: Mapping[str, Callable[[ExitStack, Path], Lake]] = {"s3": _s3, "gs": _google, "abfss": _azure, "hdfs": _hdfs}
"""Opens the store of a scheme; services end with the stack, and log into the folder."""
