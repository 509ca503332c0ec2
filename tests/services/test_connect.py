# SPDX-License-Identifier: Apache-2.0
"""The worker of Kafka Connect has Debezium's connector, and answers when its constructor returns."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

from tests.services.connect import Connect

if TYPE_CHECKING:
    from tests.services.broker import Broker


def test_the_connector_is_there_at_once(broker: Broker) -> None:
    with Connect(broker.bootstrap) as connect:
        with urllib.request.urlopen(f"{connect.url}/connector-plugins", timeout=60) as answer:
            plugins = {plugin["class"].rpartition(".")[2] for plugin in json.load(answer)}
        assert "PostgresConnector" in plugins
    assert not connect.running
