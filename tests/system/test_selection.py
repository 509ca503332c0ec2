# SPDX-License-Identifier: Apache-2.0
"""Tables that a pipeline stops to select and selects again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.broker import Broker
from tests.system.site import Site, feed, source
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


def test_a_table_that_is_selected_again_equals_the_source(broker: Broker, tmp_path: Path) -> None:
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap}, {"source": source("selection")})
    feed(broker, 0, 0, "selection")
    assert site.sync().code == 0
    before = sorted(file.name for file in site.location("customers").glob("*.parquet"))
    site.changes["tables"] = {"exclude": ["shop.customers"]}
    feed(broker, 1, 1, "selection")
    assert site.sync().code == 0
    assert site.tables()["customers"]["state"] == "dropped"
    assert sorted(file.name for file in site.location("customers").glob("*.parquet")) == before
    del site.changes["tables"]
    feed(broker, 2, 2, "selection")
    assert site.sync().code == 0
    assert unequal(site, 2) == {}
