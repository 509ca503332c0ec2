# SPDX-License-Identifier: Apache-2.0
"""The verb ``adopt``: a copied lake is refused as it is, and goes on once it is adopted."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.system.pipeline_site import PipelineSite
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


def test_a_copied_lake_is_refused_and_goes_on_once_it_is_adopted(shop: PipelineSite) -> None:
    site = shop.site
    assert site.command("adopt").code == 3, "there is no lake yet"
    assert site.sync().code == 0
    copy = replace(site, folder=site.folder.with_name("copy"))
    shutil.copytree(site.lake, copy.lake)
    shop.feed(1)
    before = sorted(str(path) for path in copy.lake.rglob("*"))
    refused = copy.sync()
    assert (refused.code, refused.json["error"]["code"]) == (3, "lake.moved")
    assert "airflow-cdc adopt" in refused.json["error"]["hint"]
    assert sorted(str(path) for path in copy.lake.rglob("*")) == before
    assert copy.command("maintain").code in (0, 3)
    adopted = copy.command("adopt")
    assert (adopted.code, adopted.json["root"]) == (0, str(copy.lake))
    assert copy.command("adopt").json == adopted.json
    for each in (copy, site):
        assert each.sync().code == 0
        assert unequal(each, 1) == {}
