# SPDX-License-Identifier: Apache-2.0
"""The entries of a recorded session of a Canal server, and a pipeline that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_provider_cdc import CdcPipeline
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import MESSAGES, Messages, Packet
from tests.canal.server import Canal, recorded


def entries() -> list[bytes]:
    """Return the entries of a recorded session: two tables, rows, one ALTER."""
    lines = recorded(Path(__file__).parent / "sessions" / "01-good.jsonl.xz")
    packets = [Packet.FromString(line.data[4:]) for line in lines if not line.ours]
    return [
        entry for packet in packets if packet.type == MESSAGES for entry in Messages.FromString(packet.body).messages
    ]


def session_of(recorded_entries: list[bytes]) -> Canal:
    """Return a server that has these 17 entries in three packets."""
    assert len(recorded_entries) == 17
    return Canal([recorded_entries[:6], recorded_entries[6:12], recorded_entries[12:]])


def pipeline(folder: Path, **source: Any) -> CdcPipeline:
    return CdcPipeline.from_dict(
        {
            "name": "shop_canal",
            "ledger": f"sqlite:///{folder}/ledger.db",
            "source": {"type": "canal-tcp", "destination": "example", "idle_seconds": 0.05, **source},
            "sink": {"root": str(folder / "lake")},
            "policy": {"engine": "inline"},
        }
    )
