# SPDX-License-Identifier: Apache-2.0
"""Say what to do about each error: commands that the command line takes, operators that there are, known codes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from airflow_provider_cdc.cli import _parser
from airflow_provider_cdc.observability.remedies import BEGINNINGS, RECORD, REMEDIES, Remedy, remedy_of
from airflow_provider_cdc.operators.approve import CdcApproveOperator
from airflow_provider_cdc.operators.doctor import CdcDoctorOperator
from airflow_provider_cdc.operators.rebuild import CdcRebuildOperator
from airflow_provider_cdc.operators.sync import CdcSyncOperator
from tests.architecture.pages import DOCS

OPERATORS = {one.__name__: one for one in (CdcApproveOperator, CdcDoctorOperator, CdcRebuildOperator, CdcSyncOperator)}
TABLES = ["shop.orders", "shop.it's $(x)"]
ERRORS = (DOCS / "reference" / "errors.md").read_text()


def test_commands_and_operators_of_each_remedy_can_be_run(tmp_path: Path) -> None:
    pipeline = tmp_path / "shop.yaml"
    pipeline.write_text("name: shop\nsource:\n  topics: x\n  format: canal-json\nsink:\n  root: /data/lake\n")
    for name, remedy in (REMEDIES | BEGINNINGS).items():
        lines = remedy.command_lines("it's.yaml", TABLES, "t/0:7", "my dag")
        assert lines and remedy.means.endswith(".") and remedy.do.endswith("."), name
        for line in lines:
            program, *arguments = shlex.split(line)
            if program == "airflow":
                assert (
                    arguments == ["dags", "unpause", "my dag"]
                    and remedy.command_lines("it's.yaml", TABLES) == lines[1:]
                )
                continue
            assert (program, "it's.yaml" in arguments) == ("airflow-cdc", True)
            _parser().parse_args(arguments)
    texts = {one.operator_text(str(pipeline), TABLES, "t/0:7") for one in (REMEDIES | BEGINNINGS).values()} - {""}
    assert len(texts) == 6
    for text in texts:
        operator = eval(text, dict(OPERATORS))
        named = [*getattr(operator, "tables", [])] or [getattr(operator, "table", TABLES[0])]
        assert named in (TABLES, TABLES[:1]), text


def test_every_code_of_a_parked_table_has_a_remedy_of_its_own() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| (table[^|]*) \|", ERRORS, re.MULTILINE)
    codes = [code for cell, _ in rows for code in re.findall(r"`([^`]+)`", cell)]
    assert len(codes) > 40
    general = remedy_of("no.such_code", "a reason")
    broad = {id(BEGINNINGS[start]) for start in ("sink.", "log.", "apply.", "source.", "kafka.")}
    assert [code for code in codes if remedy_of(code, "x") is general or id(remedy_of(code, "x")) in broad] == []


def test_every_code_with_a_remedy_is_on_the_page_of_errors() -> None:
    states = {"interrupted", "stale", "late"}
    assert [code for code in REMEDIES if f"`{code}`" not in ERRORS and code not in states] == []
    starts = [start for start in BEGINNINGS if start.endswith(".")]
    assert [start for start in starts if f"`{start}" not in ERRORS] == []


def test_a_reason_without_a_code_is_known_by_its_beginning() -> None:
    assert "snapshot" in remedy_of("", "needs rebuild: the helper table is not captured").do
    assert "create" in remedy_of("", "rows arrived but no CREATE TABLE").do
    assert remedy_of("AirflowNotFoundException").do.startswith("Read the log of the task")


def test_names_that_a_terminal_would_show_otherwise_are_not_typed() -> None:
    remedy = Remedy("x.", "y.", ("airflow-cdc rebuild {pipeline} {tables}",), "Op(tables={tables})")
    assert remedy.command_lines("shop.yaml", ["shop.a\u202eb"]) == []
    assert remedy.operator_text("shop.yaml", ["shop.a\nb"]) == ""
    assert remedy.command_lines("shop.yaml") == []  # nothing to rebuild
    assert RECORD in remedy_of("source.new_generation").command_lines("shop.yaml")[1]
