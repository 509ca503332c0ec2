# SPDX-License-Identifier: Apache-2.0
"""Report the bench: its progress, the table for people, the ratios, and which of the design's targets were met."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Cell = dict[str, Any]
"""One contestant in one case: the names of both, the least figures of its rounds, and the rounds."""

_BEGIN = time.monotonic()


MODE_CASE = "rules and modes, filled"
RULES_LIMIT = 1.25  # of a mirror's apply
MODE_LIMITS = {"append": 1.1, "soft_delete": 1.1, "history": 1.6}  # of a mirror's batch of the same changes
AFTERNOON_LIMITS = {1: 1.35, 100: 1.5, 1_000: 1.8}  # by tables: of the CPU time of `afternoon.py`


def afternoon_case(tables: int) -> str:
    """Return the name of a case of Canal's flat JSON."""
    return f"canal-json, {tables} tables" if tables > 1 else "canal-json, one table"


def say(text: str) -> None:
    """Print a line for people, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGIN:6.0f} s] {text}", file=sys.stderr, flush=True)


@dataclass
class Target:
    """One sentence of docs/design/performance.md with what was measured.

    at_least: whether more is better.
    """

    text: str
    measured: float | None
    limit: float
    at_least: bool = False
    unit: str = "x"

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def line(self) -> str:
        sign = "≥" if self.at_least else "≤"
        said = {None: "not run", True: "met", False: "NOT met"}[self.met]
        result = "–" if self.measured is None else f"{self.measured:.2f} {self.unit}"
        return f"  {said:8} {self.text:68} {result:>14}  (target {sign} {self.limit:g} {self.unit})"

    def document(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "measured": self.measured,
            "limit": self.limit,
            "at_least": self.at_least,
            "met": self.met,
        }


class Figures:
    """Cells by case and contestant."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = {(cell["case"], cell["who"]): cell for cell in cells}

    def cases(self) -> Iterable[tuple[str, str]]:
        """Return every (case, contestant)."""
        return self._cells.keys()

    def marginals(self) -> list[dict[str, Any]]:
        """Return what a change costs in batches of more and more of them (:func:`marginals`)."""
        return marginals(self._cells.values())

    def value(self, case: str, who: str, name: str) -> float | None:
        cell = self._cells.get((case, who))
        return None if cell is None else cell.get(name)

    def ratio(self, over: tuple[str, str], under: tuple[str, str], name: str) -> float | None:
        above, below = self.value(*over, name), self.value(*under, name)
        return None if above is None or not below else above / below

    def marginal(self, small: str, large: str, who: str) -> float | None:
        """Return changes a CPU second beyond those of the smaller case."""
        few, many = self.value(small, who, "cpu"), self.value(large, who, "cpu")
        rows, more = self.value(small, who, "changes"), self.value(large, who, "changes")
        if few is None or many is None or rows is None or more is None or many <= few:
            return None
        return (more - rows) / (many - few) / 1000


def targets(figures: Figures) -> list[Target]:
    """Return docs/design/performance.md, sentence by sentence."""
    ours, hand = "sync spark", "hand-written"
    result: list[Target] = []
    for tables, wall, cpu in (("one table", 2, 3), ("100 tables", 8, 12), ("100 tables in one topic", 8, 12)):
        for state in ("empty", "filled"):
            case = f"{tables}, {state}"
            for name, limit in (("wall", wall), ("cpu", cpu)):
                ratio = figures.ratio((case, hand), (case, ours), name)
                if state == "empty" or ratio is not None:
                    result.append(Target(f"{case}: hand-written against ours, {name}", ratio, limit, at_least=True))
    for tables, limit in (
        ("100 tables", 1.3),
        ("100 tables in one topic", 1.3),
        ("1000 tables", 1.8),
        ("1000 tables in one topic", 1.8),
    ):
        for name in ("wall", "cpu"):
            ratio = figures.ratio((f"{tables}, empty", ours), ("one table, empty", ours), name)
            result.append(Target(f"{tables} against one, {name}", ratio, limit))
    result += _scale(figures)
    result += _costs(figures)
    limits = [("with rules", "apply", RULES_LIMIT), *((who, "cpu", limit) for who, limit in MODE_LIMITS.items())]
    for who, name, limit in limits:
        ratio = figures.ratio((MODE_CASE, who), (MODE_CASE, "mirror"), name)
        result.append(Target(f"{MODE_CASE}: {who} against a mirror, {name}", ratio, limit))
    for count, limit in AFTERNOON_LIMITS.items():
        case = afternoon_case(count)
        ratio = figures.ratio((case, "sync inline"), (case, "afternoon's job"), "cpu")
        result.append(Target(f"{case}: sync inline against an afternoon's job, cpu", ratio, limit))
    for kind in ("one table", "one table, plain"):
        ratio = figures.ratio((f"{kind}, empty", "land alone"), (f"{kind}, empty", "bare loop, envelope"), "cpu")
        result.append(Target(f"{kind}: land against the bare consumer with envelopes, cpu", ratio, 2.5))
    for case in ("one table, empty", "one table, filled", "100 tables, empty", "1000 tables, empty"):
        peak = figures.value(case, ours, "peak")
        result.append(Target(f"{case}: peak memory", None if peak is None else peak / 1e9, 2, unit="GB"))
    for case in sorted({case for case, _ in figures.cases() if case.startswith("format ")}):
        ratio = figures.ratio((case, "land alone"), (case, "bare loop, envelope"), "cpu")
        if not case.endswith(("protobuf", "avro")):
            result.append(Target(f"{case}: land against the bare consumer, cpu", ratio, 2.5))
        faster = figures.ratio((case, "plain decoder"), (case, "decode alone"), "microseconds")
        limit = 3 if case.endswith("protobuf") else 1
        result.append(Target(f"{case}: plain decoder against ours", faster, limit, at_least=True))
        peak = figures.value(case, ours, "peak")
        result.append(Target(f"{case}: peak memory", None if peak is None else peak / 1e9, 2, unit="GB"))
    result.append(Target("empty batch, wall", figures.value("nothing new", ours, "wall"), 1, unit="s"))
    result.append(
        Target(
            "inline batch of 10 000 changes, wall", figures.value("10 000 changes", "sync inline", "wall"), 2, unit="s"
        )
    )
    return result


_SMALLEST = "10 messages"
_FIXED_CPU = {"sync spark": 4.5, "sync inline": 1}  # seconds of a batch of 10 messages
_RATES = {  # thousands of changes a CPU second, by case
    "one table, empty": 80,
    "one table, plain, empty": 100,
    "format canal-json": 100,
    "format canal-protobuf": 100,
}


def _costs(figures: Figures) -> list[Target]:
    """Return the targets of what a batch costs whatever is in it, and of what one more change costs."""
    result = []
    for who, limit in _FIXED_CPU.items():
        fixed = figures.value(_SMALLEST, who, "cpu")
        result.append(Target(f"{_SMALLEST}: {who}, CPU", fixed, limit, unit="s"))
        for case, least in _RATES.items():
            rate = figures.marginal(_SMALLEST, case, who)
            result.append(Target(f"{case}: {who}, marginal rate", rate, least, True, "k/CPU-s"))
    return result


def _scale(figures: Figures) -> list[Target]:
    """Return the targets of ten thousand tables, and of single tables that are large."""
    result = []
    for case, who in figures.cases():
        if case.startswith("10000 tables") and case.endswith(", empty"):
            result.append(Target(f"{case}: {who}, CPU", figures.value(case, who, "cpu"), 60, unit="s"))
        if _SIZE.fullmatch(case) or case.startswith(("10000 tables", "snapshot of ")):
            largest, limit = figures.value(case, who, "largest"), 2 if case.startswith("10000 ") else 1.5
            text = f"{case}: {who}, memory of the largest process"
            result.append(Target(text, None if largest is None else largest / 1e9, limit, unit="GB"))
    costs: dict[str, list[float]] = {}
    for one in figures.marginals():
        costs.setdefault(one["who"], []).append(one["microseconds"])
    for who, each in costs.items():
        if len(each) > 1:
            text = f"changes at once: {who}, highest marginal cost of a size against the lowest"
            result.append(Target(text, max(each) / min(each), 1.15))
    return result


_SIZE = re.compile(r"(\d+) changes at once")


def marginals(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Return what a change costs beyond those of the next smaller batch of one table, by contestant: µs of CPU."""
    sizes: dict[str, list[tuple[int, float]]] = {}
    for cell in cells:
        if _SIZE.fullmatch(cell["case"]) and not cell["failed"]:
            sizes.setdefault(cell["who"], []).append((cell["changes"], cell["cpu"]))
    return [
        {"who": who, "from": few, "to": many, "microseconds": round((more - less) / (many - few) * 1e6, 2)}
        for who, costs in sizes.items()
        for (few, less), (many, more) in pairwise(sorted(costs))
    ]


def said(marginal: dict[str, Any]) -> str:
    """Return a line for people."""
    return f"{marginal['who']}: {marginal['microseconds']} µs CPU a change from {marginal['from']} to {marginal['to']}"


def table(cells: list[Cell], reference: str = "hand-written") -> str:
    """All cells; the ratio is the hand-written job's figure over this one's."""
    figures = Figures(cells)
    names = f"{'case':36} {'contestant':20} {'wall s':>7} {'CPU s':>7} {'peak GB':>8} {'read MB':>8} {'written':>8}"
    head = f"{names} {'wall':>7} {'CPU':>7} {'foreign':>8}  equal"
    lines = [head, "-" * len(head)]
    last = ""
    for cell in cells:
        case, who = cell["case"], cell["who"]
        ratios = [
            "" if who == reference or ratio is None else f"{ratio:.1f} x"
            for ratio in (figures.ratio((case, reference), (case, who), name) for name in ("wall", "cpu"))
        ]
        if cell["failed"]:
            lines.append(f"{case if case != last else '':36} {who:20} FAILED: {cell['failed']}")
        else:
            equal = {None: "", True: "yes", False: "NO"}[cell["equal"]]
            spent = f"{cell['wall']:7.2f} {cell['cpu']:7.2f} {cell['peak'] / 1e9:8.2f}"
            moved = f"{cell['read'] / 1e6:8.0f} {cell['written'] / 1e6:8.0f}"
            text = f"{spent} {moved} {ratios[0]:>7} {ratios[1]:>7} {cell['foreign']:8.2f}  {equal}"
            lines.append(f"{case if case != last else '':36} {who:20} {text}")
        if cell.get("note"):
            lines.append(f"{'':36} {'':20} {cell['note']}")
        last = case
    return "\n".join(lines)
