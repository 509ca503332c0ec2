# SPDX-License-Identifier: Apache-2.0
"""Places that are not ours, away or not to be written: their tables are parked and catch up, nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.airflow.shop import Answer
from tests.system.place import Place
from tests.system.verdict import ledger_faults, unequal, versions

pytestmark = pytest.mark.system


def _parked(answer: Answer, *tables: str) -> dict[str, str]:
    """Demand that these tables and no others were parked; return why."""
    assert (answer.code, answer.json["status"]) == (3, "parked"), answer.out + answer.err
    why = {line["table"]: line["reason"] for line in answer.json["parked"]}
    assert set(why) == set(tables), why
    return why


def _foreign_files(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "export.csv").write_text("id,name\n1,a\n")


def _foreign_table(place: Path) -> None:
    write_deltalake(str(place), pa.table({"whose": ["not yours"]}))


@pytest.mark.parametrize("lay", [_foreign_files, _foreign_table])
def test_a_location_that_is_taken_parks_its_table_only(place: Place, lay: object) -> None:
    location = place.site.location("customers")
    lay(location)  # type: ignore[operator]
    laid = {file: file.read_bytes() for file in location.rglob("*") if file.is_file()}
    why = _parked(place.site.sync(), "customers")
    assert "sink.not_ours" in why["customers"] and str(location) in why["customers"]
    assert {file: file.read_bytes() for file in location.rglob("*") if file.is_file()} == laid
    assert unequal(place.site, 0, but=["customers"]) == {}
    assert place.site.tables()["customers"]["state"] == "parked"

    shutil.rmtree(location)
    place.feed(1)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(place.site, 1) == {}
    assert ledger_faults(place.site, 2) == []


def test_what_was_parked_is_reported_again_where_nothing_is_new(place: Place) -> None:
    _foreign_files(place.site.location("customers"))
    _parked(place.site.sync(), "customers")
    _parked(place.site.sync(), "customers")


def test_the_same_command_again_catches_up_without_new_records(place: Place) -> None:
    _foreign_files(place.site.location("customers"))
    _parked(place.site.sync(), "customers")
    shutil.rmtree(place.site.location("customers"))
    assert place.site.sync().code == 0
    assert unequal(place.site, 0) == {}


def _meddle(place: Place) -> DeltaTable:
    """Let somebody else delete rows of one table after the first batch."""
    assert place.site.sync().code == 0
    table = DeltaTable(str(place.site.location("customers")))
    before = table.version()
    table.delete("id < 20")
    place.feed(1)
    why = _parked(place.site.sync(), "customers")["customers"]
    assert "sink.changed_by_other" in why and "DELETE" in why and f"expected_version={before}" in why, why
    assert unequal(place.site, 1, but=["customers"]) == {}
    assert DeltaTable(str(place.site.location("customers"))).version() == before + 1
    return table


def test_a_table_that_somebody_else_changed_is_parked_and_catches_up_after_the_commit_is_taken_away(
    place: Place,
) -> None:
    table = _meddle(place)
    (place.site.location("customers") / "_delta_log" / f"{table.version():020}.json").unlink()
    place.feed(2)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(place.site, 2) == {}


def test_a_table_that_somebody_else_changed_catches_up_after_a_restore(place: Place) -> None:
    table = _meddle(place)
    table.restore(table.version() - 1)
    place.feed(2)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert unequal(place.site, 2) == {}


def test_a_table_that_is_away_is_parked_and_catches_up_when_it_is_back(place: Place) -> None:
    assert place.site.sync().code == 0
    location = place.site.location("customers")
    location.rename(place.site.folder / "away")
    place.feed(1)
    assert "sink.missing" in _parked(place.site.sync(), "customers")["customers"]
    assert not location.exists()
    (place.site.folder / "away").rename(location)
    place.feed(2)
    assert place.site.sync().code == 0
    assert unequal(place.site, 2) == {}


def test_upkeep_by_others_is_no_meddling(place: Place) -> None:
    assert place.site.sync().code == 0
    place.feed(1)
    assert place.site.sync().code == 0
    DeltaTable(str(place.site.location("customers"))).optimize.compact()
    DeltaTable(str(place.site.location("orders"))).create_checkpoint()
    place.feed(2)
    done = place.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.out
    assert unequal(place.site, 2) == {}


def test_a_sink_root_that_cannot_be_made(place: Place) -> None:
    (place.site.folder / "file").write_text("no folder")
    place.site.changes["sink"] = {"root": str(place.site.folder / "file" / "lake")}
    refused = place.site.sync()
    assert refused.code in (2, 3, 5), refused.err
    assert "Traceback" not in refused.err
    assert refused.json["error"]["hint"]


def test_a_sink_that_cannot_be_written_is_an_error_and_the_batch_goes_on_once_it_can(place: Place) -> None:
    """The root is a folder of the kernel's, where not even root may write."""
    place.site.changes["sink"] = {"root": "/proc/sys/lake"}
    refused = place.site.sync()
    assert refused.code in (2, 3, 5), refused.err
    assert "Traceback" not in refused.err
    del place.site.changes["sink"]
    assert place.site.sync_patiently()[0].code == 0
    assert unequal(place.site, 0) == {}


def test_a_table_location_that_cannot_be_written_parks_or_fails_but_loses_nothing(place: Place) -> None:
    """A file stands where the database's folder has to be."""
    place.site.lake.mkdir()
    (place.site.lake / "shop").write_text("in the way")
    refused = place.site.sync()
    assert refused.code in (3, 5), refused.out + refused.err
    assert "Traceback" not in refused.err
    (place.site.lake / "shop").unlink()
    place.feed(1)
    done, _ = place.site.sync_patiently()
    done = place.site.sync() if done.json["seq"] == 1 else done
    assert done.code == 0, done.err
    assert unequal(place.site, 1) == {}


def test_a_lake_that_is_not_mounted_parks_everything_and_nothing_is_lost_when_it_is_back(place: Place) -> None:
    assert place.site.sync().code == 0
    away = place.site.folder / "away"
    place.site.lake.rename(away)
    place.feed(1)
    refused = place.site.sync()
    assert refused.code in (3, 5), refused.out
    assert versions(place.site.lake) == {}, "no table is begun again in the wrong place"
    shutil.rmtree(place.site.lake, ignore_errors=True)
    away.rename(place.site.lake)
    place.feed(2)
    done = place.site.sync()
    done = place.site.sync() if done.json.get("seq") == 2 else done
    assert done.code != 0 or unequal(place.site, 2) == {}, "rows were lost in silence"
