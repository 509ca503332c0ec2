# SPDX-License-Identifier: Apache-2.0
"""Places that are not ours, away or not to be written: their tables are parked and catch up, nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.airflow.shop import Answer
from tests.system.pipeline_site import PipelineSite
from tests.system.verdict import ledger_faults, unequal, versions

pytestmark = pytest.mark.system


def _parked(answer: Answer, *tables: str) -> dict[str, str]:
    """Demand that these tables and no others were parked; return why."""
    assert (answer.code, answer.json["status"]) == (3, "parked"), answer.out + answer.err
    why = {line["table"]: line["reason"] for line in answer.json["parked"]}
    assert set(why) == set(tables), why
    return why


def _foreign_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "export.csv").write_text("id,name\n1,a\n")


def _foreign_table(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"whose": ["not yours"]}))


@pytest.mark.parametrize("lay", [_foreign_files, _foreign_table])
def test_a_location_that_is_taken_parks_its_table_only(shop: PipelineSite, lay: object) -> None:
    location = shop.site.location("customers")
    lay(location)  # type: ignore[operator]
    laid = {file: file.read_bytes() for file in location.rglob("*") if file.is_file()}
    why = _parked(shop.site.sync(), "customers")
    assert "sink.not_ours" in why["customers"] and str(location) in why["customers"]
    assert {file: file.read_bytes() for file in location.rglob("*") if file.is_file()} == laid
    assert unequal(shop.site, 0, but=["customers"]) == {}
    assert shop.site.tables()["customers"]["state"] == "parked"

    shutil.rmtree(location)
    shop.feed(1)
    done = shop.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(shop.site, 1) == {}
    assert ledger_faults(shop.site, 2) == []


def test_what_was_parked_is_reported_again_where_nothing_is_new(shop: PipelineSite) -> None:
    _foreign_files(shop.site.location("customers"))
    _parked(shop.site.sync(), "customers")
    _parked(shop.site.sync(), "customers")


def test_the_same_command_again_catches_up_without_new_records(shop: PipelineSite) -> None:
    _foreign_files(shop.site.location("customers"))
    _parked(shop.site.sync(), "customers")
    shutil.rmtree(shop.site.location("customers"))
    assert shop.site.sync().code == 0
    assert unequal(shop.site, 0) == {}


def _meddle(shop: PipelineSite) -> DeltaTable:
    """Let somebody else delete rows of one table after the first batch."""
    assert shop.site.sync().code == 0
    table = DeltaTable(str(shop.site.location("customers")))
    before = table.version()
    table.delete("id < 20")
    shop.feed(1)
    why = _parked(shop.site.sync(), "customers")["customers"]
    assert "sink.changed_by_other" in why and "DELETE" in why and f"expected_version={before}" in why, why
    assert unequal(shop.site, 1, but=["customers"]) == {}
    assert DeltaTable(str(shop.site.location("customers"))).version() == before + 1
    return table


def test_a_table_that_somebody_else_changed_is_parked_and_catches_up_after_the_commit_is_taken_away(
    shop: PipelineSite,
) -> None:
    table = _meddle(shop)
    (shop.site.location("customers") / "_delta_log" / f"{table.version():020}.json").unlink()
    shop.feed(2)
    done = shop.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(shop.site, 2) == {}


def test_a_table_that_somebody_else_changed_catches_up_after_a_restore(shop: PipelineSite) -> None:
    table = _meddle(shop)
    table.restore(table.version() - 1)
    shop.feed(2)
    done = shop.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert unequal(shop.site, 2) == {}


def test_a_table_that_is_away_is_parked_and_catches_up_when_it_is_back(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    location = shop.site.location("customers")
    location.rename(shop.site.folder / "away")
    shop.feed(1)
    assert "sink.missing" in _parked(shop.site.sync(), "customers")["customers"]
    assert not location.exists()
    (shop.site.folder / "away").rename(location)
    shop.feed(2)
    assert shop.site.sync().code == 0
    assert unequal(shop.site, 2) == {}


def test_upkeep_by_others_is_no_meddling(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    shop.feed(1)
    assert shop.site.sync().code == 0
    DeltaTable(str(shop.site.location("customers"))).optimize.compact()
    DeltaTable(str(shop.site.location("orders"))).create_checkpoint()
    shop.feed(2)
    done = shop.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert unequal(shop.site, 2) == {}


def test_a_sink_root_that_cannot_be_made(shop: PipelineSite) -> None:
    (shop.site.folder / "file").write_text("no folder")
    shop.site.changes["sink"] = {"root": str(shop.site.folder / "file" / "lake")}
    refused = shop.site.sync()
    assert refused.code in (2, 3, 5), refused.err
    assert "Traceback" not in refused.err
    assert refused.json["error"]["hint"]


def test_a_sink_that_cannot_be_written_is_an_error_and_the_batch_goes_on_once_it_can(shop: PipelineSite) -> None:
    """The root is a folder of the kernel's, where not even root may write."""
    shop.site.changes["sink"] = {"root": "/proc/sys/lake"}
    refused = shop.site.sync()
    assert refused.code in (2, 3, 5), refused.err
    assert "Traceback" not in refused.err
    del shop.site.changes["sink"]
    assert shop.site.sync_patiently()[0].code == 0
    assert unequal(shop.site, 0) == {}


def test_a_table_location_that_cannot_be_written_parks_or_fails_but_loses_nothing(shop: PipelineSite) -> None:
    """A file stands where the database's folder has to be."""
    shop.site.lake.mkdir()
    (shop.site.lake / "shop").write_text("in the way")
    refused = shop.site.sync()
    assert refused.code in (3, 5), refused.out + refused.err
    assert "Traceback" not in refused.err
    (shop.site.lake / "shop").unlink()
    shop.feed(1)
    done, _ = shop.site.sync_patiently()
    done = shop.site.sync() if done.json["seq"] == 1 else done
    assert done.code == 0, done.err
    assert unequal(shop.site, 1) == {}


def test_a_lake_that_is_not_mounted_parks_everything_and_nothing_is_lost_when_it_is_back(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    away = shop.site.folder / "away"
    shop.site.lake.rename(away)
    shop.feed(1)
    refused = shop.site.sync()
    assert refused.code in (3, 5), refused.out
    assert versions(shop.site.lake) == {}, "no table is begun again in the wrong shop"
    shutil.rmtree(shop.site.lake, ignore_errors=True)
    away.rename(shop.site.lake)
    shop.feed(2)
    done = shop.site.sync()
    done = shop.site.sync() if done.json.get("seq") == 2 else done
    assert done.code != 0 or unequal(shop.site, 2) == {}, "rows were lost in silence"
