# SPDX-License-Identifier: Apache-2.0
"""Generate the Python modules of all .proto files of this folder: ``python proto/generate.py [root folder]``."""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).parent
ROOT = PROTO.parent
PLACE = "airflow_provider_cdc/core/formats/generated"


def generate(root: Path) -> None:
    """Write ``<name>_pb2.py`` and ``<name>_pb2.pyi`` of each file into :data:`PLACE` below a folder."""
    # protobuf knows files by path: under PLACE another library's file of the same name does not conflict
    files = sorted(f"{PLACE}/{path.name}" for path in PROTO.glob("*.proto"))
    arguments = ["protoc", f"--proto_path={PLACE}={PROTO}", f"--python_out={root}", f"--pyi_out={root}", *files]
    if protoc.main(arguments):
        raise SystemExit(1)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
