# SPDX-License-Identifier: Apache-2.0
"""Masked columns through the command line: the salt comes from a connection, and nothing prints a value."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.airflow.shop import Shop, rows, until
from tests.services.broker import Broker

SALT = "a-salt-that-nobody-prints"
RULES = {"tables": {"shop.customers": {"columns": {"mask": {"email": "hash"}, "exclude": ["phone"]}}}}


def test_a_pipeline_masks_with_the_password_of_its_connection(filled: Broker, tmp_path: Path) -> None:
    connection = {"bootstrap.servers": filled.bootstrap}
    (tmp_path / "plain").mkdir()
    (tmp_path / "masked").mkdir()
    plain, masked = Shop(tmp_path / "plain", connection), Shop(tmp_path / "masked", connection)
    masked.changes = {**RULES, "mask_connection": "salt"}
    missing = masked.run("sync", "--json", "--until", until(1))
    assert missing.code == 2 and "salt" in missing.json["error"]["message"]
    masked.environment = {"AIRFLOW_CONN_SALT": json.dumps({"conn_type": "generic", "password": SALT})}
    answers = [masked.run("sync", "--json", "--until", until(1)), masked.run("tables", "--json")]
    assert [answer.code for answer in answers] == [0, 0], answers[0].out[-3000:]
    assert plain.run("sync", "--until", until(1)).code == 0

    people = rows(plain.lake, "shop", "customers")
    expected = [{name: value for name, value in one.items() if name != "phone"} for one in people]
    for one in expected:
        one["email"] = hashlib.sha256(f"{SALT}{one['email']}".encode()).hexdigest() if one["email"] else None
    assert sorted(rows(masked.lake, "shop", "customers"), key=repr) == sorted(expected, key=repr)

    secrets = [SALT, *(str(one[name]) for one in people for name in ("email", "phone") if one[name])]
    printed = "".join(answer.out + answer.err for answer in answers)
    files = [file for file in masked.folder.rglob("*") if file.is_file() and "_cdc" not in file.parts]
    assert people and files
    for secret in secrets:
        assert secret not in printed
        assert not [file for file in files if secret.encode() in file.read_bytes()]
    log = [file for file in masked.folder.rglob("*") if file.is_file() and SALT.encode() in file.read_bytes()]
    assert log == []
