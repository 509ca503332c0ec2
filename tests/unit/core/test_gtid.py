# SPDX-License-Identifier: Apache-2.0
"""GTIDs of MySQL and MariaDB, as their manuals write them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.gtid import Gtid, parse_gtid


@pytest.mark.parametrize(
    ("text", "gtid"),
    [
        ("3E11FA47-71CA-11E1-9E33-C80AA9429562:23", ("mysql", "3e11fa47-71ca-11e1-9e33-c80aa9429562", 23)),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:dom_1:7", ("mysql", "3e11fa47-71ca-11e1-9e33-c80aa9429562:dom_1", 7)),
        ("0-1-270", ("mariadb", "0", 270)),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", None),
        ("tx-9", None),
        ("", None),
        (None, None),
    ],
)
def test_the_numbers_of_a_stream_count_on(text: str | None, gtid: tuple[str, str, int] | None) -> None:
    assert parse_gtid(text) == (None if gtid is None else Gtid(*gtid))
