# SPDX-License-Identifier: Apache-2.0
"""The verb ``replay``: rows of the change log are applied again, and no table moves backwards."""

from __future__ import annotations

import json

import pytest

from tests.airflow.shop import PHASES
from tests.system.pipeline_site import PipelineSite
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


@pytest.fixture
def ground(request: pytest.FixtureRequest) -> PipelineSite:
    """Return a pipeline whose topics hold the shop's first phase."""
    topics: PipelineSite = request.getfixturevalue("shop")
    return topics


def test_any_range_in_any_order_leaves_the_tables_equal(ground: PipelineSite) -> None:
    assert ground.site.sync().code == 0
    ground.feed(1)
    assert ground.site.sync().code == 0
    before = {name: table["version"] for name, table in ground.site.tables().items()}

    nothing_new = ground.site.command("replay", "--from", PHASES[1]["window_end"])
    assert (nothing_new.code, nothing_new.json["changes"]) == (0, {"replayed": 0}), nothing_new.err
    assert {name: table["version"] for name, table in ground.site.tables().items()} == before

    one = ground.site.command("replay", "--tables", "shop.customers", "--until", PHASES[0]["window_end"])
    assert (one.code, one.json["status"]) == (0, "done"), one.err
    assert one.json["changes"]["replayed"] == one.json["records"] > 0
    assert [table["table"] for table in one.json["tables"]] == ["customers"]

    every = ground.site.command("replay")
    assert every.code == 0, every.err
    assert {table["table"] for table in every.json["tables"]} >= {"customers", "orders", "page_views"}
    assert unequal(ground.site, 1) == {}
    assert [batch["seq"] for batch in ground.site.batches()] == [1, 2, 3, 4, 5]
    assert ground.site.sync().json["status"] == "nothing_to_do"


def test_a_table_that_is_not_there_is_a_problem_of_the_command(ground: PipelineSite) -> None:
    assert ground.site.sync().code == 0
    refused = ground.site.command("replay", "--tables", "shop.custmers")
    assert refused.code == 2
    assert json.loads(refused.out)["error"]["code"] == "configuration"
    assert "did you mean 'shop.customers'?" in refused.err
    assert len(ground.site.batches()) == 1
