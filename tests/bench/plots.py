# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of a bench: `python -m tests.bench.plots RESULT.json FOLDER`.

The folder gets one SVG a subject, `bench.json` with the figures that they show, and `figures.md` with all of them.
The same figures give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.report import Cell, said
from tests.bench.results import Document, load, without_runs

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "bench",  # ids that do not change from run to run
    "svg.fonttype": "none",  # letters as text, not as outlines
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "legend.frameon": False,
}
_COLORS = {"sync inline": "#1b7837", "sync spark": "#2166ac", "sync cluster": "#762a83", "hand-written": "#d6604d"}
_SIZE = (7.2, 3.2)  # inches
_CPU = "CPU seconds"


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plots", description=__doc__)
    parser.add_argument("result", type=Path, help="figures of `make bench` and `make growth`")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    write(without_runs(load(options.result)), options.folder)


def write(document: Document, folder: Path) -> None:
    """Write all plots and the figures that they show."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "figures.md").write_text(page(document), encoding="utf-8")
    with mpl.rc_context(_STYLE):
        for name, draw in PLOTS.items():
            figure = Figure(figsize=_SIZE, layout="constrained")
            draw(document, figure)
            _legend(figure)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


# ---- one subject each


def _tables(document: Document, figure: Figure) -> None:
    axes = _axes(figure, 1)[0]
    for pattern, style in ((r"(one|\d+) tables?, empty", "o-"), (r"(one|\d+) tables? in one topic, empty", "s--")):
        of_topics = " (one topic)" if "--" in style else ""
        for who, points in _series(_cells(document), pattern, "cpu"):
            axes.plot(*_split(points), style, color=_COLORS[who], label=f"{who}{of_topics}")
    axes.set(xscale="log", yscale="log", xlabel="tables that share the changes", ylabel=_CPU)


def _sizes(document: Document, figure: Figure) -> None:
    pattern = r"(\d+) changes at once"
    for axes, (name, unit, label) in zip(
        _axes(figure, 2), (("cpu", 1.0, _CPU), ("peak", 1e9, "peak memory, GB")), strict=True
    ):
        for who, points in _series(_cells(document), pattern, name):
            numbers, values = _split(points)
            axes.plot([n / 1e6 for n in numbers], [v / unit for v in values], "o-", color=_COLORS[who], label=who)
        axes.set(xlabel="million changes of one table", ylabel=label, xlim=(0, None), ylim=(0, None))


def _stored(document: Document, figure: Figure) -> None:
    _by_stored(document, figure, ("recent keys", "random keys"), (("cpu", 1.0, _CPU), ("peak", 1e9, "peak memory, GB")))


def _layouts(document: Document, figure: Figure) -> None:
    _by_stored(document, figure, ("ADD COLUMN", "RENAME COLUMN"), (("cpu", 1.0, _CPU), ("written", 1e6, "MB written")))


def _by_stored(
    document: Document, figure: Figure, kinds: Iterable[str], shown: Iterable[tuple[str, float, str]]
) -> None:
    """Draw bars for each number of stored rows and kind of change."""
    cells = [(match, cell) for match, cell in _matching(_cells(document), rf"(\d+) stored rows, ({'|'.join(kinds)})")]
    groups = list(dict.fromkeys((match[1], match[2]) for match, _ in cells))
    labels = [f"{int(rows) / 1e6:g} million,\n{kind}" for rows, kind in groups]
    for axes, (name, unit, label) in zip(_axes(figure, 2), shown, strict=True):
        values = {(cell["who"], match[1], match[2]): cell[name] / unit for match, cell in cells}
        _bars(axes, labels, {who: [values.get((who, *group)) for group in groups] for who in _who(values)})
        axes.set(ylabel=label)


def _formats(document: Document, figure: Figure) -> None:
    axes = _axes(figure, 1)[0]
    cells = [(match[1], cell) for match, cell in _matching(_cells(document), r"format (.*)") if cell["who"] in _COLORS]
    names = sorted({name for name, _ in cells})
    rates = {(cell["who"], name): cell["changes"] / cell["cpu"] / 1000 for name, cell in cells}
    _bars(axes, names, {who: [rates.get((who, name)) for name in names] for who in _who(rates)})
    axes.set(ylabel="thousand rows per CPU second")
    axes.tick_params(axis="x", rotation=40)
    for text in axes.get_xticklabels():
        text.set_horizontalalignment("right")


def _growth(document: Document, figure: Figure) -> None:
    axes = _axes(figure, 1)[0]
    samples = document.get("growth", [])
    batches = [sample["batches"] for sample in samples]
    for name, color, what in (("small_cpu", "#2166ac", "small batch"), ("empty_cpu", "#1b7837", "empty batch")):
        for index, (style, which) in enumerate((("s:", "of a pipeline of 10 batches"), ("o-", "of this pipeline"))):
            values = [sample[name][index] for sample in samples]
            axes.plot(batches, values, style, color=color, label=f"{what} {which}")
    axes.set(xlabel="batches that the pipeline has had", ylabel=_CPU, ylim=(0, None))


PLOTS: Mapping[str, Callable[[Document, Figure], None]] = {
    "tables": _tables,
    "sizes": _sizes,
    "stored": _stored,
    "layouts": _layouts,
    "formats": _formats,
    "growth": _growth,
}

# ---- all figures


def page(document: Document) -> str:
    """Return a page with every figure."""
    lines = [
        "# Figures of the bench\n",
        "Made by `tests/bench/plots.py`; [Performance](../performance.md) says what they mean. Each is the least of its"
        " rounds; CPU, memory and bytes are those of all processes together.\n",
        "| case | who | changes | CPU-s | s | peak GB | largest process GB | MB read | MB written | commit |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_row(cell) for cell in _cells(document)),
    ]
    if document.get("marginal"):
        lines += ["\n## What one more change costs\n", *(f"* {said(each)}" for each in document["marginal"])]
    if document.get("options", {}).get("quick"):
        lines.insert(
            2, "The last run was `--quick`: a few changes, one round. It shows what is measured, not how fast it is.\n"
        )
    machines = dict.fromkeys(cell["machine"] for cell in _cells(document))
    return "\n".join([*lines, "\n## Machine\n", *(f"* {machine}" for machine in machines)]) + "\n"


def _row(cell: Cell) -> str:
    gigabytes = (f"{cell[name] / 1e9:.2f}" for name in ("peak", "largest"))
    megabytes = (f"{cell[name] / 1e6:.0f}" for name in ("read", "written"))
    times = f"{cell['cpu']:.2f}", f"{cell['wall']:.2f}"
    parts = cell["case"], cell["who"], f"{cell['changes']:,}", *times, *gigabytes, *megabytes, _short(cell["commit"])
    return f"| {' | '.join(parts)} |"


def _short(commit: str) -> str:
    number, dash, dirty = commit.partition("-")
    return f"{number[:10]}{dash}{dirty}"


# ---- parts of plots


def _axes(figure: Figure, count: int) -> list[Axes]:
    return list(figure.subplots(1, count, squeeze=False)[0])


def _legend(figure: Figure) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        columns = max(1, 96 // (max(map(len, labels)) + 8))
        figure.legend(handles, labels, loc="outside upper center", ncols=min(columns, 4))


def _cells(document: Document) -> list[Cell]:
    return [cell for cell in document.get("cells", ()) if not cell["failed"]]


def _matching(cells: Iterable[Cell], pattern: str) -> Iterator[tuple[re.Match[str], Cell]]:
    for cell in cells:
        if match := re.fullmatch(pattern, cell["case"]):
            yield match, cell


def _series(cells: Iterable[Cell], pattern: str, name: str) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    """Yield contestants with a figure by the number in the names of cases."""
    every = list(_matching(cells, pattern))
    for who in _COLORS:
        of_who = [(match, cell) for match, cell in every if cell["who"] == who]
        if of_who:
            yield who, sorted((1 if match[1] == "one" else int(match[1]), cell[name]) for match, cell in of_who)


def _split(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [number for number, _ in points], [value for _, value in points]


def _who(values: Iterable[tuple[Any, ...]]) -> list[str]:
    there = {key[0] for key in values}
    return [who for who in _COLORS if who in there]


def _bars(axes: Axes, labels: list[str], values: Mapping[str, list[float | None]]) -> None:
    width = 0.8 / max(1, len(values))
    for number, (who, heights) in enumerate(values.items()):
        left = (number - (len(values) - 1) / 2) * width
        middles = [index + left for index, height in enumerate(heights) if height is not None]
        axes.bar(middles, [height for height in heights if height is not None], width, color=_COLORS[who], label=who)
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(axis="x", visible=False)


if __name__ == "__main__":
    main()
