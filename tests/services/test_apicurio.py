# SPDX-License-Identifier: Apache-2.0
"""The client of a schema registry, against Apicurio's own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.schema_registry.client import ask
from tests.sample import ALL
from tests.services.apicurio import Apicurio

SCHEMAS = 300 if ALL else 60


@pytest.fixture(scope="module")
def registry() -> Iterator[Apicurio]:
    server = Apicurio()
    yield server
    server.stop()


def text(number: int) -> str:
    fields = [{"name": f"c{number}", "type": ["null", {"type": "int", "connect.type": "int16"}], "default": None}]
    return json.dumps({"type": "record", "name": f"R{number}", "namespace": "shop.t", "fields": fields})


def test_a_schema_is_answered_as_it_was_registered(registry: Apicurio) -> None:
    identity = registry.register("shop.t-value", text(1))
    assert registry.register("shop.other-value", text(1)) == identity
    (answer,) = ask({"url": registry.url}, [identity]).values()
    assert answer is not None
    assert json.loads(answer["schema"]) == json.loads(text(1))
    assert answer.get("schemaType", "AVRO") == "AVRO"


def test_many_schemas_are_answered_each_by_its_id(registry: Apicurio) -> None:
    ids = {registry.register(f"shop.m{number}-value", text(number)): number for number in range(2, SCHEMAS)}
    answers = ask({"url": registry.url + "/"}, ids)
    assert {identity: json.loads(answer["schema"])["name"] for identity, answer in answers.items() if answer} == {
        identity: f"R{number}" for identity, number in ids.items()
    }


def test_an_id_that_the_registry_does_not_have_is_none(registry: Apicurio) -> None:
    assert ask({"url": registry.url}, [987654, 2**31 - 1]) == {987654: None, 2**31 - 1: None}


def test_a_schema_of_another_kind_says_so(registry: Apicurio) -> None:
    identity = registry.register("shop.p-value", 'syntax = "proto3"; message A { int32 id = 1; }', "PROTOBUF")
    (answer,) = ask({"url": registry.url}, [identity]).values()
    assert answer is not None
    assert answer["schemaType"] == "PROTOBUF"


def test_another_address_of_the_server_is_no_registry(registry: Apicurio) -> None:
    with pytest.raises(ConfigurationError, match="/apis/ccompat/v7"):
        ask({"url": registry.url.removesuffix("/apis/ccompat/v7")}, [1])


def test_a_registry_that_was_stopped_is_away() -> None:
    with pytest.raises(UnavailableError, match="registry"):
        ask({"url": "http://127.0.0.1:9", "timeout": "1"}, [1])
