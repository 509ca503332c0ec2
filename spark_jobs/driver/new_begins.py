# SPDX-License-Identifier: Apache-2.0
"""Recognise that the source's log began again: after a failover or RESET MASTER later changes have lower positions.

The stretches of a batch are compared with the marks of the batches before (:class:`KnownMarks`). The columns of a
stretch that may hold another log are compared, too, and only one that still may is read record by record
(:func:`new_begins`).
The first record of that log is the **begin** of the next generation in its partition.

A record that is sent again has been read before: neither its GTID nor its source time is newer than what its partition
has shown. A record with a lower position than its partition has shown, and with a GTID number or a source time that was
never seen, is of another log. This holds for replicas that commit out of order (a partition keeps the order of the
log), for several servers in one log, and for partitions that are read to different offsets. Across partitions, a GTID
stands files before a lower number of its stream only in another log.

Once a log is known to have ended, less is needed to tell its records apart from those of the next: a partition may be
read less far than others, or have been silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.model.position import generation_of, in_generation
from spark_jobs.driver.generations import Generations, Marks, Shown, by_generation, far_below, newest_of
from spark_jobs.driver.known_marks import KnownMarks, is_newer
from spark_jobs.driver.landed_records import LandedRecords, columns_between, each_partition, records_inside, windows_of
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.manifest import LandReport
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stretches import Stretch


def new_begins(landed: LandReport, generations: Generations, storage: Storage) -> list[Begin]:
    """Return the first record of each partition that is of a later generation than the partition is in.

    A generation one above the newest is a new log. A partition that goes on to a third log shows that in turn, once the
    second is part of ``generations``.

    :param landed: positions have the generations that are part of ``generations``.
    :param generations: after the batches before, with those of the batch's first records that were found so far.
    """
    begins = _first_begins(landed, generations, storage)
    new = [begin for begin in begins.values() if begin.generation > generations.newest]
    oldest = min((begin.time for begin in new if begin.time is not None), default=None)
    if any(is_newer(begin.time, oldest) for begin in new):
        # a partition that has gone on to a third log may have less of the second: what others have of it shows where
        known = [begin for begin in begins.values() if not is_newer(begin.time, oldest)]
        further = _first_begins(landed, generations.with_begins(known), storage)
        earlier = (one for one in further.values() if one.generation == generations.newest + 1)
        begins |= {one.partition_key: one for one in earlier if one.partition_key in begins}
    return [begins[partition_key] for partition_key in sorted(begins)]


def _first_begins(landed: LandReport, generations: Generations, storage: Storage) -> dict[str, Begin]:
    """Return the same by partition, where each partition is in doubt for itself."""
    shown = by_generation(landed)
    records = LandedRecords([landed], storage)
    begins: dict[str, Begin] = {}
    for known, stretch in _with_candidates(landed, storage, list(_doubtful(shown, generations))):
        if stretch.partition_key in begins:
            continue  # all that its partition has from there on is of another log
        below = known.below(stretch)
        first = known.first_of(
            record
            for record in records.between(stretch.partition_key, stretch.start, stretch.end, stretch.low, below)
            if generation_of(record["position"]) == generation_of(stretch.high) and record["position"] < below
        )
        if first is not None:
            begins[stretch.partition_key] = _begin(stretch.partition_key, *first, known, generations, shown)
    for begin in _statements_of_snapshots(landed, generations, list(begins.values())):
        if begin.partition_key not in begins or begin.offset < begins[begin.partition_key].offset:
            begins[begin.partition_key] = begin
    return begins


def shows_another_log(record: dict[str, Any], number: int, generations: Generations) -> bool:
    """Return whether a repaired record, said to be of a generation, shows that another log had begun before it.

    Of a generation before the newest it shows none that is not known.

    :param generations: with all that was read so far.
    """
    if number < generations.newest:
        return False
    mark = generations.all[number].marks.of(f"{record['topic']}/{record['partition']}")
    known = replace(_known_of(number, {}, generations), position=mark.position, time=mark.time, highest=mark.gtids)
    return known.first_of([{**record, "position": in_generation(record["position"], number)}]) is not None


def next_log_behind(
    repaired: LandReport, since: Sequence[LandReport], before: Generations, storage: Storage
) -> dict[str, Any] | None:
    """Return a record of another log that counts as one of the log that repaired records are of.

    Nobody had read the repaired ones when it was read: they may have been the only ones that stand above it.

    :param since: the batches from the first that read one of them on.
    :param before: after the batches before those.
    """
    records = LandedRecords([repaired, *since], storage)
    for number, shown in by_generation(repaired).items():
        marks = before.all[number].marks if number < len(before.all) else Marks()
        read = [stretch for one in since for stretch in by_generation(one).get(number, Shown()).stretches]
        for partition_key in sorted({stretch.partition_key for stretch in [*read, *shown.stretches]}):
            mark = marks.of(partition_key)
            own = [stretch for stretch in shown.stretches if stretch.partition_key == partition_key]
            others = [stretch for stretch in shown.stretches if stretch.partition_key != partition_key]
            ends = [(far_below(one.high), max(one.time, marks.newest or 0)) for one in others if one.time is not None]
            known = KnownMarks(mark.position, mark.time, mark.gtids, marks.gtids, {}, "", None, ends)
            behind = [stretch for stretch in read if stretch.partition_key == partition_key]
            doubtful, known, start = _doubtful_behind(own, behind, known)
            if not doubtful:
                continue
            low, below = min(one.low for _, one in doubtful), max(reached.below(one) for reached, one in doubtful)
            first = known.first_of(
                record
                for start, end in windows_of([*own, *behind], start)
                for record in records.between(partition_key, start, end, low, below)
                if generation_of(record["position"]) == number
            )
            if first is not None:
                return first[0]
    return None


def _doubtful_behind(
    repaired: Sequence[Stretch], read: Sequence[Stretch], known: KnownMarks
) -> tuple[list[tuple[KnownMarks, Stretch]], KnownMarks, int]:
    """Return the stretches of a partition that have to be looked at with the repaired ones, with what is known then.

    :returns: they, what is known before the offset from which on records are to be compared, and that offset.
    """
    first = min((stretch.start for stretch in repaired), default=0)
    rest = list(repaired)
    for stretch in read:
        if stretch.end < first:
            known = known.with_stretch(stretch)
        else:
            rest.append(stretch)
    doubtful: list[tuple[KnownMarks, Stretch]] = []
    reached = known
    # a stretch with repaired records in its middle comes behind them
    for stretch in sorted(rest, key=lambda stretch: stretch.end):
        if reached.may_show(stretch):
            doubtful.append((reached, stretch))
        reached = reached.with_stretch(stretch)
    return doubtful, known, min(stretch.start for stretch in rest)


def _doubtful(shown: Mapping[int, Shown], generations: Generations) -> Iterator[tuple[KnownMarks, Stretch]]:
    """Return the stretches that have to be looked at record by record, with what was known before each."""
    for number in range(len(generations.all)):
        base = _known_of(number, shown, generations)
        marks = generations.all[number].marks
        partitions: dict[str, list[Stretch]] = {}
        for stretch in shown.get(number, Shown()).stretches:
            if generations.current(stretch.partition_key) == number:
                partitions.setdefault(stretch.partition_key, []).append(stretch)
        for partition_key, stretches in sorted(partitions.items()):
            mark = marks.of(partition_key)
            known = replace(base, position=mark.position, time=mark.time, highest=mark.gtids)
            for stretch in sorted(stretches, key=lambda stretch: stretch.start):
                if known.may_show(stretch):
                    yield known, stretch
                known = known.with_stretch(stretch)


def _known_of(number: int, shown: Mapping[int, Shown], generations: Generations) -> KnownMarks:
    """Return what is known of a generation without what one partition shows."""
    marks, batch = generations.all[number].marks, shown.get(number, Shown())
    after = marks.after(batch)
    landed = [(one.high, one.time) for one in batch.stretches if one.time is not None]
    if after.description is not None:
        landed.append(after.description)
    return KnownMarks(
        position="",
        time=None,
        highest={},
        gtids=marks.gtids,
        first={stream: (number_seen, far_below(at)) for stream, (number_seen, at) in after.first_gtids.items()},
        far=far_below(marks.timed),
        newest=marks.newest,
        landed=[(far, time) for high, time in landed if (far := far_below(high))],
        next=[begin for one in generations.all[number + 1 :] for begin in one.begins.values()],
    )


def _begin(
    partition_key: str,
    record: dict[str, Any],
    highest: str,
    reached: KnownMarks,
    generations: Generations,
    shown: Mapping[int, Shown],
) -> Begin:
    """Return the begin of the generation that a record is of, which is not of the one that its partition is in.

    :param highest: highest position that the record is below of.
    :param reached: what was known before the record's stretch.
    """
    position, time = record["position"], record["source_time"]
    number = _generation_of_other(record, generations, shown)
    others = [begin.before for begin in reached.next if begin.generation == number]
    if reached.position and position < reached.position:
        known, before = reached.position, reached.time
    else:
        # what earlier batches and other partitions of this one show of the log before
        ended = [newest for far, newest in reached.landed if position < far and is_newer(time, newest)]
        known, before = highest, newest_of([reached.newest, reached.time, *ended, *others])
    if before is None:
        before = newest_of(others)
    return Begin(
        partition_key,
        number,
        record["offset"],
        in_generation(position, number),
        known,
        time,
        before,
        record["transaction_id"],
    )


def _generation_of_other(record: dict[str, Any], generations: Generations, shown: Mapping[int, Shown]) -> int:
    """Return the first later generation that a record may be of; one above the newest if it fits none."""
    time = record["source_time"]
    for number in range(generation_of(record["position"]) + 1, len(generations.all)):
        later = generations.all[number + 1].since if number < generations.newest else None
        ended_before = later is not None and time is not None and time > later
        inside = {**record, "position": in_generation(record["position"], number)}
        if not ended_before and not _known_of(number, shown, generations).is_other(inside):
            return number
    return len(generations.all)


def _statements_of_snapshots(landed: LandReport, generations: Generations, new: Sequence[Begin]) -> Iterator[Begin]:
    """Return the first statement of each partition that is of a snapshot whose rows are of a later generation.

    Those of a connector show nothing themselves: one that only recovers structures describes an older position, too.
    """
    begins = sorted([*generations.begins(), *new], key=lambda begin: begin.generation, reverse=True)
    for statement in landed.statements:
        position, time = statement["position"], statement["source_time"]
        if statement["op"] != "snapshot" or position is None:
            continue
        begin = next((begin for begin in begins if begin.follows(position, time)), None)
        partition_key = f"{statement['topic']}/{statement['partition']}"
        if begin is not None and generations.begins_behind(partition_key, begin.generation, statement["offset"]):
            position = in_generation(position, begin.generation)
            yield begin._replace(partition_key=partition_key, offset=statement["offset"], position=position, time=time)


def _with_candidates(
    landed: LandReport, storage: Storage, doubtful: list[tuple[KnownMarks, Stretch]]
) -> list[tuple[KnownMarks, Stretch]]:
    """Return the stretches that may hold a record of another log, by a look at the columns of all their records.

    Lowest position and newest time of a stretch are of different records: where a batch is of many files of the log,
    nearly all its stretches are in doubt, and records as objects would be far larger than its rows.
    """
    candidates = {number for number, (known, stretch) in enumerate(doubtful) if known.next or stretch.falls}
    by_partition: dict[str, list[int]] = {}
    looked_at = [(number, stretch) for number, (_, stretch) in enumerate(doubtful) if number not in candidates]
    for number, stretch in looked_at:
        by_partition.setdefault(stretch.partition_key, []).append(number)
    if looked_at:
        low, high = min(stretch.low for _, stretch in looked_at), max(stretch.high for _, stretch in looked_at)
        for records in columns_between(landed, storage, low, high):
            for partition_key, mine in each_partition(records):
                for number in by_partition.get(partition_key, ()):
                    known, stretch = doubtful[number]
                    if number not in candidates and known.may_have_other(records_inside(mine, stretch)):
                        candidates.add(number)
    return [doubtful[number] for number in sorted(candidates)]
