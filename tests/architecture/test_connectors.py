# SPDX-License-Identifier: Apache-2.0
"""Check that the names of Debezium's connectors stay with their modules and their registry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from airflow_provider_cdc.core.formats.connect.connectors.registry import CONNECTORS, DEFAULT_CONNECTOR, NOT_READ
from tests.architecture.imports import ROOT, python_files

CORE = ROOT / "airflow_provider_cdc" / "core"
HOME = CORE / "formats" / "connect" / "connectors"
# the default connector's databases are those of other tools, too; so are Oracle and Db2
OTHERS = {name: kind for name, kind in CONNECTORS.items() if name != DEFAULT_CONNECTOR}
READ = {text for name, kind in OTHERS.items() for text in (name, *kind.writers, *kind.databases)}
NAMES = READ | {text for pair in NOT_READ.items() for text in pair if text.lower() not in ("oracle", "db2")}
NAMED = re.compile(rf"\b({'|'.join(map(re.escape, sorted(NAMES)))})\b", re.IGNORECASE)
OTHER_MEANINGS = {
    "spark_jobs/lake/batch_log.py": "where the ledger is",
    "airflow_provider_cdc/core/formats/dts/entries.py": "a source of DTS",
    "airflow_provider_cdc/core/timeline/helper_tables.py": "names of tables that a tool makes at a MySQL server",
}


def naming(source: str) -> Iterator[str]:
    """Yield the texts of a module that name a connector; docstrings are for people."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings and NAMED.search(str(node.value)):
            yield f"{node.lineno}: {node.value}"


def test_no_other_module_names_a_connector() -> None:
    files = [file for file in [*python_files(str(CORE)), *python_files("spark_jobs")] if not file.is_relative_to(HOME)]
    texts = {str(file.relative_to(ROOT)): list(naming(file.read_text(encoding="utf-8"))) for file in files}
    assert {file: some for file, some in texts.items() if some and file not in OTHER_MEANINGS} == {}
    assert [file for file in OTHER_MEANINGS if not texts[file]] == []


def test_a_text_that_names_one_is_noticed() -> None:
    source = '"""Of PostgreSQL."""\ndialect = "postgresql"\nsummary = f"Debezium ({x}, PostgreSQL)"\nother = "oracle"'
    assert [text.partition(":")[0] for text in naming(source)] == ["2", "3"]
