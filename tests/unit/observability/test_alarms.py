# SPDX-License-Identifier: Apache-2.0
"""Alerts and dashboard read metrics that are sent, under the names that they get in Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.architecture.imports import ROOT

FOLDER = ROOT / "docs" / "guides" / "alarms"
PAGE = ROOT / "docs" / "guides" / "alarms.md"
SEVERITIES = {"info", "warning", "critical"}
_LISTED = re.compile(r"`(cdc\.[a-zA-Z_.]+)`")
_READ = re.compile(r"\b(airflow_cdc_[a-z_]+|cdc_[a-z]+_total)\b")
_FAMILIES = re.compile(r'__name__=~"(airflow_cdc_[^"]+)"')


def series() -> set[str]:
    """Return the names in Prometheus of all metrics that the reference lists."""
    names = set()
    for line in (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 5 or cells[2] not in ("gauge", "counter", "timer"):
            continue
        for metric in _LISTED.findall(cells[1]):
            name = "airflow_" + re.sub(r"KIND|NAME", "x", metric).replace(".", "_")
            suffixes = {"gauge": [""], "counter": ["_total"], "timer": ["_sum", "_count", "_bucket"]}[cells[2]]
            names |= {name + suffix for suffix in suffixes}
    assert len(names) > 20
    return names


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads((FOLDER / "grafana-dashboard.json").read_text())["panels"]
    return shown


def expressions() -> list[str]:
    return [rule["expr"] for rule in rules()] + [target["expr"] for panel in panels() for target in panel["targets"]]


def test_all_that_is_read_is_sent() -> None:
    sent, recorded = series(), {rule["record"] for rule in rules() if "record" in rule}
    for expression in expressions():
        plain = re.sub(r'"[^"]*"', "", expression)
        assert set(_READ.findall(plain)) <= sent | recorded, expression
        for pattern in _FAMILIES.findall(expression):
            assert any(re.fullmatch(pattern, name) for name in sent), pattern


def test_every_metric_is_read_but_that_of_the_looks() -> None:
    patterns = [pattern for expression in expressions() for pattern in _FAMILIES.findall(expression)]
    read = {name for expression in expressions() for name in _READ.findall(expression)}
    unread = {name for name in series() if name not in read and not any(re.fullmatch(one, name) for one in patterns)}
    assert {re.sub("_(sum|count|bucket)$", "", name) for name in unread if not name.endswith("_bucket")} <= {
        "airflow_cdc_look_duration",
        "airflow_cdc_phase_x",
    }


def test_an_alert_says_what_to_do_and_which_page_says_more() -> None:
    page = PAGE.read_text()
    for rule in rules():
        if "alert" not in rule:
            continue
        notes = rule["annotations"]
        assert rule["labels"]["severity"] in SEVERITIES and {"summary", "description", "page"} == set(notes)
        assert "{{ $labels.pipeline }}" in notes["summary"]
        assert (ROOT / "docs" / notes["page"]).is_file(), notes["page"]
        assert f"| `{rule['alert']}` |" in page
    assert len(set(re.findall(r"^\| `(Cdc\w+)`", page, re.MULTILINE))) == sum("alert" in rule for rule in rules())


def test_panels_lie_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        grid = panel["gridPos"]
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & taken and grid["x"] + grid["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_promtool_sees_every_alert_ring() -> None:
    tests = yaml.safe_load((FOLDER / "prometheus-tests.yaml").read_text())["tests"]
    seen = {case["alertname"] for test in tests for case in test.get("alert_rule_test", ()) if case.get("exp_alerts")}
    asked = [case for test in tests for case in test.get("promql_expr_test", ())]
    seen |= {name for case in asked for name in re.findall(r'alertname="(\w+)"', str(case["exp_samples"]))}
    assert seen == {rule["alert"] for rule in rules() if "alert" in rule}


@pytest.mark.parametrize(("verb", "file"), [("check", "prometheus-rules.yaml"), ("test", "prometheus-tests.yaml")])
def test_rules_are_those_of_prometheus(verb: str, file: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; Debian's package prometheus brings it")
    done = subprocess.run([promtool, verb, "rules", file], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
