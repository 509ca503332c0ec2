# SPDX-License-Identifier: Apache-2.0
"""Store the packets of a source that forgets them once acknowledged, as a log of numbered packets in the lake.

A segment is one file of packets and a manifest, named by the number of its first packet. The manifest makes the segment
visible, exactly once. Packets are numbered through all segments, so that a range of numbers means the same packets for
ever: what an offset is in a partition of Kafka.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from airflow_provider_cdc.core.errors import BusyError, SinkError
from airflow_provider_cdc.core.lake.lake_files import LakeFiles

_DIGITS = 20  # of a packet's number in a name: names sort as numbers do
_MANIFEST = ".json"


@dataclass(frozen=True)
class Packet:
    """One packet as the source sent it.

    :param received_ms: when it was received, milliseconds since 1970.
    """

    data: bytes
    received_ms: int


@dataclass(frozen=True)
class Segment:
    """Describe a segment, as its manifest does.

    :param start: number of the first packet.
    :param file: name of the file with the packets, one behind the other.
    :param sizes: bytes of each packet.
    :param received_ms: when each packet was received, milliseconds since 1970; never falling.
    :param digest: BLAKE2b of the file, 16 bytes as hexadecimal digits.
    """

    start: int
    file: str
    sizes: list[int]
    received_ms: list[int]
    digest: str

    @property
    def end(self) -> int:
        """Number behind that of the last packet."""
        return self.start + len(self.sizes)


def segments_folder(pipeline: str, destination: str) -> str:
    """Return the folder of a destination's segments, relative to the sink's root."""
    return f"_cdc/{pipeline}/segments/{destination}"


class SegmentLog:
    """The segments of one destination, on a local disk or on an object store.

    :param root: path or URL of the lake.
    :param folder: folder inside of it, as by :func:`segments_folder`.
    :param options: storage options in delta-rs' names.
    """

    def __init__(self, root: str, folder: str, options: Mapping[str, str] | None = None) -> None:
        self._files, self._folder = LakeFiles(root, options), folder
        self._known: dict[int, Segment] = {}  # a manifest never changes

    # ---- reading

    def log_id(self) -> str:
        """Return the id that the log got with its first segment, empty before."""
        document = self._document("log.json")
        return "" if document is None else str(document["id"])

    def end(self) -> int:
        """Return the number that the next packet gets."""
        starts = self._starts()
        return self._segment(starts[-1]).end if starts else 0

    def number_at(self, received_ms: int) -> int | None:
        """Return the number of the first packet that was received at or after a time, None if there is none."""
        low, starts = 0, self._starts()
        high = len(starts)
        while low < high:
            middle = (low + high) // 2
            if self._segment(starts[middle]).received_ms[-1] < received_ms:
                low = middle + 1
            else:
                high = middle
        if low == len(starts):
            return None
        segment = self._segment(starts[low])
        return segment.start + next(i for i, time in enumerate(segment.received_ms) if time >= received_ms)

    def read(self, start: int, end: int) -> Iterator[tuple[int, Packet]]:
        """Yield the packets of a range with their numbers, one segment in memory at a time.

        :raises SinkError: ``log.missing`` or ``log.damaged``, a segment is gone or not what was written.
        """
        starts = self._starts()
        for index in range(max(0, bisect_right(starts, start) - 1), len(starts)):
            if starts[index] >= end or start >= end:
                return
            segment = self._segment(starts[index])
            if start < segment.end:
                yield from self._packets(segment, start, min(end, segment.end))
                start = segment.end
        if start < end:
            raise self._gone(f"{start:0{_DIGITS}d}{_MANIFEST}")

    def _packets(self, segment: Segment, start: int, end: int) -> Iterator[tuple[int, Packet]]:
        data = self._file(segment.file)
        if data is None:
            raise self._gone(segment.file)
        if _digest(data) != segment.digest:
            raise self._damaged(segment.file, len(data))
        offsets = [0, *accumulate(segment.sizes)]
        for number in range(start, end):
            index = number - segment.start
            yield number, Packet(data[offsets[index] : offsets[index + 1]], segment.received_ms[index])

    def _starts(self) -> list[int]:
        names = self._files.names(self._folder)
        stems = (name.removesuffix(_MANIFEST) for name in names if name.endswith(_MANIFEST))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _segment(self, start: int) -> Segment:
        if start not in self._known:
            name = f"{start:0{_DIGITS}d}{_MANIFEST}"
            document = self._document(name)
            if document is None:
                raise self._gone(name)
            try:
                self._known[start] = Segment(**document)
            except TypeError:
                raise self._damaged(name, len(document)) from None
        return self._known[start]

    # ---- writing

    def append(self, packets: Sequence[Packet]) -> Segment:
        """Write packets as the next segment; they are durable when this returns.

        :raises BusyError: ``canal.segment_taken``, another process wrote a segment at the same time.
        :raises UnavailableError: ``log.unavailable``, the store failed.
        """
        if not self.log_id():
            self._create("log.json", json.dumps({"id": str(uuid.uuid4())}).encode())
        start, data = self.end(), b"".join(packet.data for packet in packets)
        name = f"{start:0{_DIGITS}d}"
        file = f"{name}-{uuid.uuid4().hex}.packets"
        # a clock that is set back must not make times fall: they are searched
        before = self._segment(self._starts()[-1]).received_ms[-1] if start else 0
        times = list(accumulate((packet.received_ms for packet in packets), max, initial=before))[1:]
        segment = Segment(start, file, [len(packet.data) for packet in packets], times, _digest(data))
        self._create(file, data)
        if not self._create(f"{name}{_MANIFEST}", json.dumps(vars(segment)).encode()):
            raise BusyError(
                "canal.segment_taken",
                "another process reads the same destination for the same pipeline",
                where={"path": f"{self._files.root}/{self._folder}/{name}{_MANIFEST}"},
                hint="run again; nothing was acknowledged",
            )
        self._known[start] = segment
        return segment

    # ---- the store

    def _create(self, name: str, content: bytes) -> bool:
        return self._files.create(f"{self._folder}/{name}", content)

    def _file(self, name: str) -> bytes | None:
        return self._files.read(f"{self._folder}/{name}")

    def _document(self, name: str) -> dict[str, Any] | None:
        data = self._file(name)
        if data is None:
            return None
        try:
            document = json.loads(data)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise self._damaged(name, len(data))
        return document

    def _gone(self, name: str) -> SinkError:
        return SinkError(
            "log.missing",
            "a segment of packets is gone",
            where={"path": f"{self._files.root}/{self._folder}/{name}"},
            hint="restore the lake's _cdc folder; the server does not have these packets any more",
        )

    def _damaged(self, name: str, size: int) -> SinkError:
        return SinkError(
            "log.damaged",
            f"a segment of packets is not what was written ({size} bytes)",
            where={"path": f"{self._files.root}/{self._folder}/{name}"},
            hint="restore the file from a backup of the lake",
        )


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
