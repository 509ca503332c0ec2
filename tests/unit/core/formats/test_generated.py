# SPDX-License-Identifier: Apache-2.0
"""The generated protobuf modules are those of the .proto files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PLACE = Path("airflow_provider_cdc", "core", "formats", "generated")


def test_generated_modules_are_what_make_proto_writes(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools is in the dev extra")
    (tmp_path / PLACE).mkdir(parents=True)
    subprocess.run([sys.executable, ROOT / "proto" / "generate.py", tmp_path], check=True)
    new = {path.name: path.read_text() for path in (tmp_path / PLACE).iterdir()}
    old = {path.name: path.read_text() for path in (ROOT / PLACE).glob("*_pb2.py*")}
    assert new == old, "run `make proto`"
    assert new
