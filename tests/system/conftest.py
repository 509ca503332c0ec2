# SPDX-License-Identifier: Apache-2.0
"""Topics and a pipeline for each test in the common broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.airflow.shop import demand_data
from tests.services.broker import Broker
from tests.system.pipeline_site import PipelineSite
from tests.system.site import Site, source


@pytest.fixture
def shop(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> PipelineSite:
    """Return a pipeline whose topics hold the shop's first phase."""
    demand_data()
    prefix = "t" + "".join(c for c in request.node.name if c.isalnum())[-60:]
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap}, {"source": source(prefix)})
    site.changes["policy"] = {"lease_seconds": 5}
    created = PipelineSite(site, broker, prefix)
    created.feed(0)
    return created
