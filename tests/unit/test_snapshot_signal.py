# SPDX-License-Identifier: Apache-2.0
"""Address a signal that asks for a snapshot to its connector."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.batch.snapshot_signal import address_of
from airflow_provider_cdc.core.config import CdcPipeline, DeltaSink, KafkaSource
from airflow_provider_cdc.core.errors import ConfigurationError

POSTGRES = {"connector": "postgresql"}


def pipeline(
    schema_topic: str | None, options: dict[str, str], *, signals: str | None = "signals", wire: str = "debezium-json"
) -> CdcPipeline:
    source = KafkaSource("shop.*", wire, schema_topic=schema_topic, signal_topic=signals, options=options)
    return CdcPipeline("shop", source, DeltaSink("/data/lake"))


def test_the_prefix_is_the_connectors_and_not_the_name_of_a_tables_topic() -> None:
    assert address_of(pipeline("shopdb", {})) == ("signals", "shopdb")
    assert address_of(pipeline("shop.ctl.ddl_log", POSTGRES)) == ("signals", "shop")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (pipeline(None, {}), "source.schema_topic"),
        (pipeline("shop", POSTGRES), "source.schema_topic: 'shop' does not say"),
        (pipeline("shopdb", {}, signals=None), "source.signal_topic"),
        (pipeline(None, {}, wire="canal-json"), "source.format"),
    ],
)
def test_what_is_missing_is_named(stated: CdcPipeline, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        address_of(stated)
