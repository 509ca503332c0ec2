# SPDX-License-Identifier: Apache-2.0
"""Segments of packets on S3 are what they are on a local disk."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.errors import BusyError, UnavailableError
from airflow_provider_cdc.core.lake.segments import Packet, SegmentLog, segments_folder
from tests.services.s3 import S3


def test_segments_on_s3(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"{s3.create_bucket('segments')}/lake"
    packets = [Packet(f"packet {number}".encode(), 1_000 + number) for number in range(7)]

    def log() -> SegmentLog:
        return SegmentLog(root, segments_folder("shop", "example"), s3.storage_options)

    assert log().end() == 0 and log().log_id() == ""
    for start, end in ((0, 3), (3, 4), (4, 7)):
        log().append(packets[start:end])
    assert log().end() == 7 and log().log_id() == log().log_id() != ""
    assert list(log().read(2, 6)) == list(enumerate(packets))[2:6]
    assert log().number_at(1_004) == 4
    late = log()
    monkeypatch.setattr(late, "end", lambda: 4)
    with pytest.raises(BusyError):
        late.append(packets[:1])
    assert list(log().read(0, 7)) == list(enumerate(packets))


def test_a_bucket_that_is_not_there_is_an_error_of_the_store(s3: S3) -> None:
    log = SegmentLog("s3://nowhere-at-all/lake", segments_folder("shop", "example"), s3.storage_options)
    with pytest.raises(UnavailableError) as caught:
        log.append([Packet(b"packet", 1)])
    assert caught.value.code == "log.unavailable"
