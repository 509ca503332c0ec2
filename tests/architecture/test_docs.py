# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ against the code: every format has one and what it shows can be used; every code is explained."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import airflow_provider_cdc
from airflow_provider_cdc.commands.output import AGAIN, CONFIGURATION, DATA, DONE
from airflow_provider_cdc.commands.registry import VERBS
from airflow_provider_cdc.core.apply.partial_images import UNKNOWN
from airflow_provider_cdc.core.apply.row_typing import ABSENT
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.statement import CreateTable
from airflow_provider_cdc.core.errors import CASCADED, CASCADED_ABOVE, CHANGES_MISSING
from airflow_provider_cdc.core.formats.connect.connectors.registry import CONNECTORS, DEFAULT_CONNECTOR, NOT_READ
from airflow_provider_cdc.core.formats.registry import FORMATS, format_names, open_format
from airflow_provider_cdc.core.values.fields import (
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
from airflow_provider_cdc.engine.jars import lock_of
from airflow_provider_cdc.get_provider_info import get_provider_info
from tests.architecture.imports import ROOT, python_files
from tests.architecture.pages import DOCS, blocks, pages, text_of

PAGES = DOCS / "formats"
REFERENCE = DOCS / "reference"
OVERVIEW = PAGES / "README.md"
# pages of connectors whose records have a format in common with others
CONNECTOR_PAGES = {page.stem for page in PAGES.glob("debezium-*.md")} - {*FORMATS}
CODE = re.compile(r"`((?:record|value|format|apply)\.[a-z_0-9]+)`")
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")


def page_of(name: str) -> str:
    return text_of(PAGES / f"{name}.md")


@cache
def source_texts() -> str:
    folders = [ROOT / "airflow_provider_cdc" / "core", ROOT / "spark_jobs"]
    return "\n".join(text_of(file) for folder in folders for file in sorted(folder.rglob("*.py")))


def connector_of(page: str) -> str:
    """Return the connector that the pipeline on a page states."""
    (example,) = blocks(page_of(page), "yaml")
    return str(CdcPipeline.from_yaml(example).source.options["connector"])


def test_every_page_is_of_a_format_or_of_a_connector() -> None:
    pages = {page.stem for page in PAGES.glob("*.md") if page != OVERVIEW}
    assert sorted(pages - CONNECTOR_PAGES) == format_names()
    assert {*map(connector_of, CONNECTOR_PAGES)} == CONNECTORS.keys() - {DEFAULT_CONNECTOR}


@pytest.mark.parametrize("name", sorted(CONNECTOR_PAGES))
def test_the_page_of_a_connector_has_its_options(name: str) -> None:
    options = CONNECTORS[connector_of(name)].options
    assert [option for option in options if f"`{option}`" not in page_of(name)] == []


def test_the_page_of_debezium_names_the_connectors_that_are_not_read() -> None:
    (listed,) = re.findall(r"^Debezium's connectors for (.*) are not read", page_of("debezium-json"), re.MULTILINE)
    assert sorted(re.split(", | and ", listed)) == sorted(NOT_READ.values())


@pytest.mark.parametrize("name", format_names())
def test_a_page_names_every_option(name: str) -> None:
    """Those of a connector with a page of its own are there."""
    default = CONNECTORS[DEFAULT_CONNECTOR].options
    elsewhere = {option for kind in CONNECTORS.values() for option in kind.options if option not in default}
    options = {*open_format(name).options} - elsewhere
    assert [option for option in options if f"`{option}`" not in page_of(name)] == []


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
    assert order == {"exact": "exact", "clock": "by clock"}[wire.order]
    where = "among rows" if wire.ddl_among_rows else "own topic"
    expected = [where if "ddl" in wire.carries else "no"]
    expected += ["yes" if what in wire.carries else "no" for what in ("progress", "transactions", "types")]
    assert [cell.partition(" (")[0] for cell in cells[:4]] == expected


@pytest.mark.parametrize("name", [*FORMATS, "README"])
def test_every_code_on_a_page_is_one_of_the_code(name: str) -> None:
    assert [code for code in CODE.findall(page_of(name)) if f'"{code}"' not in source_texts()] == []


@pytest.mark.parametrize("page", [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
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


def test_the_reference_names_every_reason_and_every_loss() -> None:
    page = text_of(REFERENCE / "types.md")
    kinds = [FRACTION_CUT, ZERO_DATE, INVALID_DATE, AMBIGUOUS_TIME, NOT_BOOLEAN, UNREADABLE, KEYLESS_SNAPSHOT_ROW]
    kinds += [TEXT_CUT, NUMBER_CLAMPED, NUMBER_PREFIX, CHARACTER_REPLACED, LABEL_LOST, NULL_REPLACED]
    assert [kind for kind in [*Reason, *kinds, ABSENT, UNKNOWN, "image_missing"] if f"`{kind}`" not in page] == []


def test_the_reference_lists_the_codes_of_all_errors() -> None:
    page = text_of(REFERENCE / "errors.md")
    rows = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    listed = {code for row in rows for code in re.findall(r"`(.+?)`", row)}
    listed |= set(re.findall(r"`(apply\.(?:rewind_needed|version_gone))`", page))
    # the pages of the formats explain these
    of_formats = ("record.", "value.", "format.", "schema.missing")
    codes = {code for code in codes_in_the_code() if not code.startswith(of_formats)}
    # built at run time, or passed on without an exception
    codes |= {"configuration", "source.new_generation", "format.unknown", "ledger_database.unknown", "table.unknown"}
    codes |= {"schema.fault", "ddl.not_understood", "window.waits", CASCADED, CASCADED_ABOVE, CHANGES_MISSING}
    assert listed == codes


def codes_in_the_code() -> set[str]:
    """Return the codes that are the first argument of what makes an error."""
    code = re.compile(r"[a-z]+\.[a-z_0-9]+")
    makers = re.compile(r"(Error|Needed|Missing|Unknown|UnsupportedRecord|out_of_memory|_error|_failed)$")
    codes = set()
    for file in [*python_files("airflow_provider_cdc"), *python_files("spark_jobs")]:
        for node in ast.walk(ast.parse(text_of(file))):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            text = node.args[0].value
            if makers.search(name) and isinstance(text, str) and code.fullmatch(text):
                codes.add(text)
    return codes


def test_every_code_of_a_record_is_on_a_page_of_a_format() -> None:
    texts = "\n".join(text_of(page) for page in PAGES.glob("*.md"))
    codes = set(re.findall(r'"((?:record|value)\.[a-z_0-9]+|schema\.missing)"', source_texts()))
    assert len(codes) > 20
    assert sorted(code for code in codes if f"`{code}`" not in texts) == []


def test_the_reference_lists_every_verb_and_exit_code() -> None:
    page = text_of(REFERENCE / "command-line.md")
    assert set(re.findall(r"^\| `([a-z]+)[ `]", page, re.MULTILINE)) == {verb.name for verb in VERBS}
    codes = {str(code) for code in (DONE, CONFIGURATION, DATA, AGAIN)}
    assert set(re.findall(r"^\| (\d) \|", page, re.MULTILINE)) == codes


def test_the_reference_documents_every_public_name() -> None:
    documented = re.findall(r"^::: airflow_provider_cdc\.[\w.]*\.(\w+)$", text_of(REFERENCE / "api.md"), re.MULTILINE)
    assert set(airflow_provider_cdc.__all__) - {"__version__"} <= set(documented)


@pytest.mark.parametrize("name", format_names())
def test_the_readme_links_every_format(name: str) -> None:
    assert f"[{name}](docs/formats/{name}.md)" in text_of(ROOT / "README.md")


@pytest.mark.parametrize("name, least", [("dags", 6), ("watching", 2)])
def test_a_page_of_dags_shows_the_examples_as_they_are(name: str, least: int) -> None:
    page = text_of(DOCS / "guides" / f"{name}.md")
    shown = dict(re.findall(r"^`example_dags/(\w+)\.py`:\n\n```python\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL))
    assert len(shown) >= least
    for example, code in shown.items():
        file = (ROOT / "example_dags" / f"{example}.py").read_text()
        assert code == file.split("from __future__ import annotations\n\n", 1)[1].rstrip(), example


def test_the_reference_lists_the_options_of_the_configuration() -> None:
    config: Any = get_provider_info()["config"]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text_of(REFERENCE / "configuration.md"), re.MULTILINE)
    assert dict(rows) == {name: option["default"] for name, option in config["cdc"]["options"].items()}


def test_the_guide_of_the_page_lists_the_options_of_the_configuration() -> None:
    config: Any = get_provider_info()["config"]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text_of(ROOT / "docs" / "guides" / "page.md"), re.MULTILINE)
    options = config["cdc"]["options"]
    assert dict(rows) == {name: option["default"] for name, option in options.items() if name.startswith("page_")}


def test_the_table_of_readers_names_the_versions_that_the_tests_have() -> None:
    page = text_of(DOCS / "guides" / "sinks.md").partition("## Who reads what")[2].partition("\n## ")[0]
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text_of(ROOT / "constraints.txt"), re.MULTILINE))
    jars = text_of(ROOT / "tests" / "services" / "iceberg_spark.lock") + text_of(lock_of("spark", "4.1"))
    (of_iceberg,) = re.findall(r"iceberg-spark-runtime[\w.-]*:([\d.]+)", jars)
    (of_delta,) = re.findall(r"delta-spark[\w.-]*:([\d.]+)", jars)
    versions = {"Spark": pinned["pyspark"], "Delta": of_delta, "Iceberg": of_iceberg, "DuckDB": pinned["duckdb"]}
    versions |= {"delta-rs": pinned["deltalake"], "polars": pinned["polars"], "pyiceberg": pinned["pyiceberg"]}
    for name, version in versions.items():
        assert f"{name} {'.'.join(version.split('.')[:2])}" in page, name
    assert all((ROOT / file).is_file() for file in re.findall(r"`(tests/[\w/]+\.py)`", page))
