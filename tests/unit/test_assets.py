# SPDX-License-Identifier: Apache-2.0
"""Assets name pipelines and tables; Airflow asks the provider whether such a name is well formed."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import pytest

from airflow_provider_cdc.surface.assets import (
    cdc_asset,
    convert_asset_to_openlineage,
    create_asset,
    sanitize_uri,
    table_extra,
)


@pytest.mark.parametrize(
    ("pipeline", "table", "uri"),
    [
        ("shop", None, "cdc://shop"),
        ("shop.eu-1_A", "db.t", "cdc://shop.eu-1_A/db/t"),
        ("shop", "db.a/b?c#d e.f", "cdc://shop/db/a%2Fb%3Fc%23d%20e.f"),
        ("shop", "ünïcode.表", "cdc://shop/%C3%BCn%C3%AFcode/%E8%A1%A8"),
    ],
)
def test_a_name_becomes_a_uri_that_airflow_keeps(pipeline: str, table: str | None, uri: str) -> None:
    asset = cdc_asset(pipeline, table)
    assert asset.uri.rstrip("/") == uri
    assert asset.name == uri, "a name of its own would collide with that of an asset by somebody else"
    assert urlunsplit(sanitize_uri(urlsplit(asset.uri))) == uri
    assert create_asset(pipeline=pipeline, table=table, extra={"owner": "me"}).extra == {"owner": "me"}


@pytest.mark.parametrize(
    "uri", ["cdc://", "cdc:///db/t", "cdc://shop/db", "cdc://shop/db/t/more", "cdc://shop/db/t?x=1", "cdc://shop//t"]
)
def test_any_other_uri_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="expected cdc://<pipeline>"):
        sanitize_uri(urlsplit(uri))


@pytest.mark.parametrize(
    ("table", "name"), [(None, "shop.eu"), ("db.orders", "db.orders"), ("d/b.ünïcode t", "d/b.ünïcode t")]
)
def test_lineage_names_an_asset_as_the_symlinks_of_its_batches_do(table: str | None, name: str) -> None:
    dataset = convert_asset_to_openlineage(cdc_asset("shop.eu", table), None)
    assert (dataset.namespace, dataset.name) == ("cdc://shop.eu", name)


@pytest.mark.parametrize(("release", "rows"), [("3.0.6", '{"upserts": 2}'), ("3.1.8", {"upserts": 2})])
def test_airflow_3_0_gets_an_extra_without_dicts(release: str, rows: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails a task of which one of an alias's events has some."""
    monkeypatch.setattr("airflow.__version__", release)
    assert table_extra({"seq": 1, "rows": {"upserts": 2}, "proof": None}) == {"seq": 1, "rows": rows, "proof": None}
