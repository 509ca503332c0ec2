# SPDX-License-Identifier: Apache-2.0
"""Detect the format of records: by decoding them with each format, and by evidence of their tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.joined_partitions import as_one
from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
from airflow_provider_cdc.core.formats.contract import Format, Grouped, Records, Registered
from airflow_provider_cdc.core.formats.evidence import Evidence, Find
from airflow_provider_cdc.core.formats.near_misses import near_miss
from airflow_provider_cdc.core.formats.registry import format_names, open_format

_LIKELY = 0.9  # share of its records that a format must read; a few may be damaged
_REGISTERED = "cannot be tried alone: its records name schemas of a registry (airflow-cdc detect --schemas FILE)"
_MEANING = frozenset({"row", "schema", "progress", "transaction"})


@dataclass(frozen=True)
class Candidate:
    """A format with the evidence for it.

    :param share: of the records that it does not pass over, how many it reads; None where it cannot be tried.
    :param evidence: sentences for people.
    :param contradicted: whether more records speak against it than for it.
    :param fitting: whether records speak for it.
    :param options: what a pipeline states in ``source.options`` to read these records with it.
    """

    format: str
    share: float | None
    evidence: str
    contradicted: bool = False
    fitting: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Detection:
    """Result of a detection.

    :param format: None where the records do not decide.
    :param options: what a pipeline states in ``source.options`` for it.
    :param candidates: the likeliest first; of formats that read none of the records only those that cannot be tried.
    :param records: records that were looked at: those with a value.
    :param near_misses: what records are that no format reads, where none is the answer, the most frequent first.
    """

    format: str | None
    candidates: tuple[Candidate, ...]
    records: int
    near_misses: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


@dataclass
class _Tally:
    """Count how a format decoded the records."""

    kinds: Counter[str] = field(default_factory=Counter)
    read: int = 0
    failed: int = 0
    for_it: Counter[str] = field(default_factory=Counter)
    against_it: Counter[str] = field(default_factory=Counter)

    def candidate(self, name: str) -> Candidate:
        counts = [f"{count} {kind}" for kind, count in self.kinds.most_common() if kind in _MEANING]
        sentences = [f"read {', '.join(counts)}" + (f"; {self.failed} records failed" if self.failed else "")]
        sentences += [f"for it: {text} ({count} records)" for text, count in self.for_it.most_common(2)]
        sentences += [f"against it: {text} ({count} records)" for text, count in self.against_it.most_common(2)]
        share = self.read / (self.read + self.failed)
        contradicted = self.against_it.total() > self.for_it.total()
        return Candidate(name, share, "; ".join(sentences), contradicted, bool(self.for_it))


def detect(partitions: Sequence[Records], schemas: SchemaSupply | None = None) -> Detection:
    """Return the format of records, if they show it.

    A format that cannot read nine in ten records, or that more records contradict than speak for, is out. Of several
    that are left the one that records speak for is the answer.

    :param partitions: the first records of each partition, in offset order.
    :param schemas: teaches a format what its records name; without it such a format cannot be tried.
    """
    count = sum(value is not None for records in partitions for value in records.values)
    candidates: list[Candidate] = []
    untried: list[Candidate] = []
    for name in format_names():
        fmt = _opened(name)
        if isinstance(fmt, str):
            untried.append(Candidate(name, None, fmt))
            continue
        if isinstance(fmt, Registered) and schemas is None:
            if any(fmt.missing(records.values) for records in partitions):
                untried.append(Candidate(name, None, _REGISTERED))
            continue
        options = _shown_options(fmt, partitions)
        fmt = open_format(name, dict(options)) if options else fmt
        tally = _tally(fmt, partitions if schemas is None else list(schemas.ahead_of(partitions, fmt)))
        if tally.read:
            candidates.append(replace(tally.candidate(name), options=options))
    candidates.sort(key=lambda candidate: (candidate.contradicted, -(candidate.share or 0), not candidate.fitting))
    answer = _answer(candidates)
    if answer is not None:
        return Detection(answer.format, tuple(candidates), count, options=answer.options)
    return Detection(None, (*candidates, *untried), count, _near_misses(partitions))


def _near_misses(partitions: Sequence[Records]) -> tuple[str, ...]:
    named = Counter(
        near_miss(key, value)
        for records in partitions
        for key, value in zip(records.keys, records.values, strict=True)
        if value is not None
    )
    return tuple(sentence for sentence, _ in named.most_common() if sentence is not None)


def _answer(candidates: Sequence[Candidate]) -> Candidate | None:
    likely = [candidate for candidate in candidates if (candidate.share or 0) >= _LIKELY and not candidate.contradicted]
    if len(likely) > 1:
        likely = [candidate for candidate in likely if candidate.fitting]
    return likely[0] if len(likely) == 1 else None


def _opened(name: str) -> Format | str:
    """Return the format, or why it cannot be tried."""
    try:
        fmt = open_format(name)
    except ConfigurationError as error:
        return f"cannot be tried alone: {'; '.join(error.problems)}"
    files = [option for option in fmt.options if option.endswith("_file")]
    if files:
        return f"cannot be tried alone: it is read with what source.options.{files[0]} names"
    return fmt


def _shown_options(fmt: Format, partitions: Sequence[Records]) -> tuple[tuple[str, str], ...]:
    """Return the options that most records show a format to be opened with; those that show none do not count."""
    evidence: Find | None = getattr(fmt, "evidence", None)
    shown = Counter(said.options for records in partitions for said in _said(evidence, records) if said.options)
    return shown.most_common(1)[0][0] if shown else ()


def _tally(fmt: Format, partitions: Sequence[Records]) -> _Tally:
    tally = _Tally()
    evidence: Find | None = getattr(fmt, "evidence", None)
    # a call costs more than a few records do
    for records in partitions if isinstance(fmt, Grouped) or not partitions else [as_one(partitions)]:
        batch = fmt.decode(records)
        kinds_at: dict[int, set[str]] = {}
        for offset, kind in zip(batch.column("offset").to_pylist(), batch.column("kind").to_pylist(), strict=True):
            kinds_at.setdefault(offset, set()).add(kind)
            tally.kinds[kind] += 1
        tally.failed += sum("error" in kinds for kinds in kinds_at.values())
        tally.read += sum("error" not in kinds and bool(kinds & _MEANING) for kinds in kinds_at.values())
        for said in _said(evidence, records):
            (tally.for_it if said.speaks_for else tally.against_it)[said.sentence] += 1
    return tally


def _said(evidence: Find | None, records: Records) -> Iterator[Evidence]:
    if evidence is None:
        return
    headers = records.headers or [None] * len(records)
    for key, value, header in zip(records.keys, records.values, headers, strict=True):
        said = None if value is None else evidence(key, value, header)
        if said is not None:
            yield said
