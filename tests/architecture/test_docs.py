"""The pages of docs/formats against the code: every format has one, and what it shows can be used."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from airflow_provider_cdc.core.apply.partial import UNKNOWN
from airflow_provider_cdc.core.apply.typing_rows import ABSENT
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.statement import CreateTable
from airflow_provider_cdc.core.formats.registry import FORMATS, format_names, open_format
from airflow_provider_cdc.core.values.field import (
    AMBIGUOUS_TIME,
    CHARACTER_REPLACED,
    FRACTION_CUT,
    INVALID_DATE,
    KEYLESS_SNAPSHOT_ROW,
    LABEL_LOST,
    NOT_BOOLEAN,
    NULL_REPLACED,
    NUMBER_CLAMPED,
    NUMBER_PREFIX,
    TEXT_CUT,
    UNREADABLE,
    ZERO_DATE,
    Reason,
)
from tests.architecture.imports import ROOT

PAGES = ROOT / "docs" / "formats"
OVERVIEW = PAGES / "README.md"
CODE = re.compile(r"`((?:record|value|format|apply)\.[a-z_0-9]+)`")
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def page_of(name: str) -> str:
    return text_of(PAGES / f"{name}.md")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@cache
def source_texts() -> str:
    folders = [ROOT / "airflow_provider_cdc" / "core", ROOT / "spark_jobs"]
    return "\n".join(text_of(file) for folder in folders for file in sorted(folder.rglob("*.py")))


def test_every_page_is_of_a_format() -> None:
    assert sorted(page.stem for page in PAGES.glob("*.md") if page != OVERVIEW) == format_names()


@pytest.mark.parametrize("name", format_names())
def test_a_page_names_every_option(name: str) -> None:
    text = page_of(name)
    assert [option for option in open_format(name).options if f"`{option}`" not in text] == []


@pytest.mark.parametrize("name", format_names())
def test_the_pipeline_on_a_page_can_be_used(name: str, tmp_path: Path) -> None:
    (example,) = blocks(page_of(name), "yaml")
    pipeline = CdcPipeline.from_yaml(example)
    assert pipeline.source.format == name
    options = dict(pipeline.source.options)
    if "schema_file" in options:
        (schema,) = blocks(page_of(name), "json")
        options["schema_file"] = str(tmp_path / "stated.avsc")
        (tmp_path / "stated.avsc").write_text(schema, encoding="utf-8")
    wire = open_format(name, options)
    for rule in pipeline.tables.tables.values():
        assert isinstance(parse(rule.create or "")[0], CreateTable)
    own_topic = "ddl" in wire.carries and not wire.ddl_among_rows
    assert (pipeline.source.schema_topic is not None) == own_topic


@pytest.mark.parametrize("name", format_names())
def test_the_overview_says_what_a_format_carries(name: str) -> None:
    wire = open_format(name)
    (row,) = [line for line in text_of(OVERVIEW).splitlines() if line.startswith(f"| [{name}]({name}.md) |")]
    _, _, order, *cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert order == {"exact": "exact", "second": "by the second"}[wire.order]
    where = "among rows" if wire.ddl_among_rows else "own topic"
    wanted = [where if "ddl" in wire.carries else "no"]
    wanted += ["yes" if what in wire.carries else "no" for what in ("progress", "transactions", "types")]
    assert [cell.partition(" (")[0] for cell in cells[:4]] == wanted


@pytest.mark.parametrize("name", [*FORMATS, "README"])
def test_every_code_on_a_page_is_one_of_the_code(name: str) -> None:
    assert [code for code in CODE.findall(page_of(name)) if f'"{code}"' not in source_texts()] == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")) + [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target, heading in LINK.findall(text_of(page)):
        file = page if not target else (page.parent / target).resolve()
        headings = [] if not heading or not file.is_file() else _headings(file)
        if not file.exists() or (heading and heading not in headings):
            lost.append(f"{target}#{heading}")
    assert lost == []


def _headings(page: Path) -> list[str]:
    """Return a page's headings as links spell them."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def test_the_readme_names_every_reason_and_every_loss() -> None:
    told = text_of(ROOT / "README.md")
    kinds = [FRACTION_CUT, ZERO_DATE, INVALID_DATE, AMBIGUOUS_TIME, NOT_BOOLEAN, UNREADABLE, KEYLESS_SNAPSHOT_ROW]
    kinds += [TEXT_CUT, NUMBER_CLAMPED, NUMBER_PREFIX, CHARACTER_REPLACED, LABEL_LOST, NULL_REPLACED]
    assert [kind for kind in [*Reason, *kinds, ABSENT, UNKNOWN, "image_missing"] if f"`{kind}`" not in told] == []


@pytest.mark.parametrize("name", format_names())
def test_the_readme_links_every_format(name: str) -> None:
    assert f"[{name}](docs/formats/{name}.md)" in text_of(ROOT / "README.md")
