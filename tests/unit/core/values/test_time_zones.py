# SPDX-License-Identifier: Apache-2.0
"""Test local time and instants: columns against Python's time zones, single values against a server's answers."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.shared import time_zones
from airflow_provider_cdc.core.values.shared.zone_names import zone_named
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

SECOND = 1_000_000
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Asia/Shanghai",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Pacific/Apia",  # left out a day
    "America/Caracas",
    "Africa/Casablanca",  # summer time the other way round, moved by Ramadan
    "Asia/Kathmandu",
    "UTC",
]


def typed(tokens: list[str], encoding: Encoding, column: ColumnType, zone: str, zero_dates: Any = "null") -> Typed:
    target = arrow_type(column, TypeOptions(zero_dates=zero_dates))
    images = pa.array([f'{{"c":{token}}}' for token in tokens])
    return type_images(images, [Field(Encoded("c", encoding, zone=zone), column, target)])


def shown(result: Typed) -> list[str | None]:
    values: list[str | None] = result.columns[0].cast(pa.string()).to_pylist()
    return [value and value.removesuffix("Z").removesuffix(".000000") for value in values]


# UNIX_TIMESTAMP(…) of MariaDB 10.11 under time_zone='Europe/Berlin', from the time zone tables
SERVER = {
    "2020-10-25 01:59:59": 1603583999,
    "2020-10-25 02:00:00": 1603584000,
    "2020-10-25 02:30:00": 1603585800,
    "2020-10-25 02:59:59": 1603587599,
    "2020-10-25 03:00:00": 1603591200,
    "2020-03-29 01:59:59": 1585443599,
    "2020-03-29 03:00:00": 1585443600,
}
TWICE = 3


def test_of_two_instants_the_earlier_is_taken_as_a_server_does() -> None:
    column = ColumnType("timestamp")
    result = typed([f'"{text}"' for text in SERVER], Encoding.TEXT, column, "Europe/Berlin")
    assert [value // SECOND for value in result.columns[0].view(pa.int64()).to_pylist()] == list(SERVER.values())
    assert (result.failures, result.lossy) == ([], {"ambiguous_time": TWICE})
    for text, instant in SERVER.items():
        alone = typed([f'"{text}"', '"x"'], Encoding.TEXT, column, "Europe/Berlin")  # one by one, for its neighbour
        assert alone.columns[0].view(pa.int64()).to_pylist() == [instant * SECOND, None]


def test_a_time_that_no_clock_showed_fails() -> None:
    tokens = ['"2020-03-29 02:00:00"', '"2020-03-29 02:59:59.999999"', "null", '"2020-03-29 03:00:00"']
    result = typed(tokens, Encoding.TEXT, ColumnType("timestamp"), "Europe/Berlin")
    assert [(failure.row, failure.reason) for failure in result.failures] == [(0, "zone_invalid"), (1, "zone_invalid")]
    assert shown(result) == [None, None, None, "2020-03-29 01:00:00"]


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "../etc/passwd", "Europe", "+8", "08:00", "+08:60", "+25:00", "", " "]
)
def test_an_unknown_zone_fails(zone: str) -> None:
    assert zone_named(zone) is None
    if zone:
        result = typed(['"2020-01-01 00:00:00"'], Encoding.TEXT, ColumnType("timestamp"), zone)
        assert [failure.reason for failure in result.failures] == ["zone_invalid"]


@pytest.mark.parametrize("zone", [*ZONES, "+08:00", "-9:30", "+00:00", "+14:00", "Z"])
def test_a_known_zone_is_known(zone: str) -> None:
    assert zone_named(zone) is not None


@pytest.mark.parametrize(
    ("zone", "instant"),
    [("+08:00", "2019-12-31 16:00:00"), ("-09:30", "2020-01-01 09:30:00"), ("Asia/Shanghai", "2019-12-31 16:00:00")],
)
def test_texts_of_instants_are_read_in_their_zone(zone: str, instant: str) -> None:
    column = ColumnType("timestamp")
    for token, encoding in [('"2020-01-01 00:00:00"', Encoding.TEXT), ('"2020-01-01T00:00:00"', Encoding.ISO_TEXT)]:
        assert shown(typed([token], encoding, column, zone)) == [instant]
        assert shown(typed([token, "null", '"x"'], encoding, column, zone)) == [instant, None, None]
        assert shown(typed([token], encoding, column, zone, "string")) == [instant]


def test_zero_dates_have_no_zone() -> None:
    tokens = ['"0000-00-00 00:00:00"', '"2020-01-01 00:00:00"']
    result = typed(tokens, Encoding.TEXT, ColumnType("timestamp"), "+08:00")
    assert (shown(result), result.lossy) == ([None, "2019-12-31 16:00:00"], {"zero_date": 1})
    as_text = typed(tokens, Encoding.TEXT, ColumnType("timestamp"), "+08:00", "string")
    assert (shown(as_text), as_text.lossy) == (["0000-00-00 00:00:00", "2019-12-31 16:00:00"], {})


def test_texts_of_local_time_columns_have_no_zone() -> None:
    assert shown(typed(['"2020-01-01 00:00:00"'], Encoding.TEXT, ColumnType("datetime"), "+08:00")) == [
        "2020-01-01 00:00:00"
    ]


@pytest.mark.parametrize(
    ("encoding", "token"),
    [
        (Encoding.EPOCH_MILLIS, "1601510400500"),
        (Encoding.EPOCH_MICROS, "1601510400500000"),
        (Encoding.EPOCH_NANOS, "1601510400500000000"),
        (Encoding.EPOCH_SECONDS, '"1601510400.5"'),
        (Encoding.EPOCH_MILLIS_TEXT, '"1601510400500.0"'),
    ],
)
def test_numbers_made_from_local_time_are_converted_back(encoding: Encoding, token: str) -> None:
    column = ColumnType("datetime", 1)
    assert shown(typed([token], encoding, column, "Asia/Shanghai")) == ["2020-10-01 08:00:00.500000"]
    assert shown(typed([token, "null", "[]"], encoding, column, "Asia/Shanghai")) == [
        "2020-10-01 08:00:00.500000",
        None,
        None,
    ]
    assert shown(typed([token], encoding, column, "Asia/Shanghai", "string")) == ["2020-10-01 08:00:00.5"]
    assert shown(typed([token], encoding, ColumnType("timestamp", 1), "Asia/Shanghai")) == [
        "2020-10-01 00:00:00.500000"
    ]


def test_dates_made_from_midnight_become_dates_again() -> None:
    tokens = ["1601481600000"]  # 2020-10-01 at +08:00
    assert shown(typed(tokens, Encoding.EPOCH_MILLIS, ColumnType("date"), "Asia/Shanghai")) == ["2020-10-01"]
    assert shown(typed(["18536"], Encoding.EPOCH_DAYS, ColumnType("date"), "Asia/Shanghai")) == ["2020-10-01"]


def random_instants(seed: int) -> list[int]:
    """Return µs since 1970: some near changes of the clocks, some anywhere, some at the ends."""
    rnd = random.Random(seed)
    march, october = datetime(rnd.randrange(1971, 2060), 3, 8), datetime(rnd.randrange(1971, 2060), 10, 20)
    instants = [0, -1, 253_402_300_799_999_999 - 86_400 * SECOND, -62_167_219_200 * SECOND + 86_400 * SECOND]
    for begin in (march, october):
        start = int(begin.replace(tzinfo=UTC).timestamp())
        instants += [(start + rnd.randrange(30 * 86_400)) * SECOND + rnd.randrange(SECOND) for _ in range(300)]
    return instants + [rnd.randrange(-2_208_988_800, 4_102_444_800) * SECOND for _ in range(300)]


@pytest.mark.parametrize("zone", ZONES)
def test_a_column_of_instants_gives_what_python_gives(zone: str) -> None:
    instants = random_instants(hash_of(zone))
    known = time_zones.local_time_column(pa.array([*instants, None], pa.int64()), zone).to_pylist()
    assert known[-1] is None
    assert known[:-1] == [time_zones.local_time_of(instant, zone) for instant in instants]
    for instant, local_time in zip(instants, known, strict=False):
        if -62_135_000_000 < instant // SECOND < 253_402_000_000:
            there = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
            local = there.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
            assert local_time == (local - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_round_trip_to_their_instants(zone: str) -> None:
    instants = random_instants(hash_of(zone) + 1)
    local_times = [time_zones.local_time_of(instant, zone) for instant in instants]
    back, twice = time_zones.instant_column(pa.array(local_times, pa.int64()), zone)
    single = [time_zones.instant_of(value, zone) for value in local_times]
    assert back.to_pylist() == [instant for instant, _ in single]
    assert twice == sum(ambiguous for _, ambiguous in single)
    for instant, (converted, ambiguous) in zip(instants, single, strict=True):
        assert converted == instant or (ambiguous and converted < instant)


@pytest.mark.parametrize("zone", ZONES)
def test_a_column_fails_where_one_of_its_local_times_does(zone: str) -> None:
    for value in random_instants(hash_of(zone) + 2):
        column = pa.array([value], pa.int64())
        try:
            expected = time_zones.instant_of(value, zone)
        except ConversionError:
            with pytest.raises(ConversionError):
                time_zones.instant_column(column, zone)
        else:
            back, twice = time_zones.instant_column(column, zone)
            assert (back.to_pylist(), twice) == ([expected[0]], int(expected[1]))


def hash_of(zone: str) -> int:
    return sum(zone.encode())
