# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/wire against the code that cites them: every cited section exists, and nothing else is cited.

A citation is ``docs/wire/<page>.md`` with section numbers behind it, as docs/wire/index.md says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT
from tests.architecture.tracked_files import tracked

PAGES = ROOT / "docs" / "wire"
# Patterns of this file are put together so that it contains no citation of its own.
FOLDER = "docs/" + "wire/"

_SECTION = r"(?:[AB](?:\d+(?:\.\d+)?)?|\d+(?:\.\d+)?)"
CITATION = re.compile(
    rf"{FOLDER}(?P<page>[\w-]+)\.md(?P<sections>(?:(?:,? |,? and | to ){_SECTION}(?![\w/]))*)", re.ASCII
)
# The documents that these pages replace, and sections without a page.
RETIRED = re.compile(r"\b(?:spec" + r"s|[Ss]" + r"heets?|quirks-" + r"seen)\b")
_BARE = re.compile(r"\b[Ss]ections? (?:[AB]?[0-9]|[AB]\b)")
_HEADING = re.compile(rf"^#+ ({_SECTION}) \S", re.MULTILINE | re.ASCII)
# a table whose first column is named "row" has numbers of sections in it
_TABLE = re.compile(r"^\| row \|.*\n\|[-|]+\n((?:\|.*\n?)+)", re.MULTILINE)


@dataclass(frozen=True)
class Citation:
    """A page and one of its sections, None where the whole page is cited."""

    page: str
    section: str | None


def citations(text: str) -> Iterator[Citation]:
    """Yield what a text cites."""
    for match in CITATION.finditer(text):
        sections = re.findall(_SECTION, match["sections"])
        yield from (Citation(match["page"], section) for section in sections or [None])


@cache
def numbers(page: str) -> tuple[str, ...]:
    """Return the numbers of a page's headings and of the rows that are numbered like sections."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1].strip() for table in _TABLE.findall(text) for row in table.splitlines()]
    return (*_HEADING.findall(text), *rows)


def missing(text: str) -> list[str]:
    """Return the citations of a text that lead to no section of no page."""
    lost = []
    for citation in citations(text):
        if not (PAGES / f"{citation.page}.md").is_file():
            lost.append(citation.page)
        elif citation.section is not None and citation.section not in numbers(citation.page):
            lost.append(f"{citation.page} {citation.section}")
    return lost


def citing() -> list[Path]:
    """Return the files that may cite a page."""
    return [file for file in tracked() if file != Path(__file__) and file.suffix in {".py", ".pyi", ".proto", ".md"}]


def test_every_cited_section_exists() -> None:
    lost = [
        f"{file.relative_to(ROOT)}:{number} cites {citation}"
        for file in citing()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        for citation in missing(line)
    ]
    assert lost == []


def test_every_page_is_cited() -> None:
    cited = {citation.page for file in citing() for citation in citations(file.read_text(encoding="utf-8"))}
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} <= cited


def test_nothing_cites_what_the_pages_replace() -> None:
    citations = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in citing()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if RETIRED.search(line) or (file.suffix != ".md" and _BARE.search(line))
    ]
    assert citations == []


@pytest.mark.parametrize("page", sorted(page.stem for page in PAGES.glob("*.md")))
def test_no_number_stands_for_two_sections(page: str) -> None:
    assert sorted(numbers(page)) == sorted(set(numbers(page)))


@pytest.mark.parametrize(
    ("cited", "lost"),
    [
        ("canal.md 4.4", []),
        ("canal.md 1, 2, 4 and 5.1).", []),
        ("canal.md 4.4, 10.4: 3 rows", []),
        ("oceanbase-oms.md 10.19", []),
        ("debezium-dtle.md A", []),
        ("debezium-dtle.md B1 to B4", []),
        ("tencent-dts.md.", []),
        ("canal.md 4.9", ["canal 4.9"]),
        ("canal.md 1, 2, 44 and 5.1", ["canal 44"]),
        ("oceanbase-oms.md 10.36", ["oceanbase-oms 10.36"]),
        ("debezium-dtle.md 2.6", ["debezium-dtle 2.6"]),  # a version in a table
        ("debezium-dtle.md A9, B99", ["debezium-dtle A9", "debezium-dtle B99"]),
        ("huawei-drs.md B", ["huawei-drs B"]),
        ("maxwell.md 1", ["maxwell"]),
    ],
)
def test_a_wrong_citation_is_found(cited: str, lost: list[str]) -> None:
    assert missing(FOLDER + cited) == lost


@pytest.mark.parametrize("text", ["canal sh" + "eet 4.4", "spe" + "cs/canal.md, 4", "quirks-" + "seen-elsewhere 1"])
def test_a_retired_citation_is_found(text: str) -> None:
    assert RETIRED.search(text)
    assert not RETIRED.search("find_spec(name), spreadsheets")


def test_a_section_without_its_page_is_found() -> None:
    assert _BARE.search("(section 10, 8)")
    assert _BARE.search("DESIGN section 8")
    assert not _BARE.search("a section of the page")
