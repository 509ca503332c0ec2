# SPDX-License-Identifier: Apache-2.0
"""The page in a real api-server: who may read it, what it never shows, ledgers that are away, what a browser sees."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from airflow_provider_cdc.plugins.routes import build_app
from tests.airflow.api_server import ADMIN, DAGS, NO_PAGE, ONE_DAG, VIEWER, ApiServer
from tests.airflow.browser import Browser, NoBrowser
from tests.airflow.installed import needs_airflow
from tests.airflow.page_ledger import HOSTILE, SECRET, VALUE, fill
from tests.airflow.page_states import REAL, STATES, fill_states

pytestmark = [pytest.mark.airflow, needs_airflow(3, 1)]  # plugins have pages of their own since then

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "airflow_provider_cdc" / "plugins" / "static"
FILLED, AWAY, MISSING, NO_URL = "cdc_filled", "postgresql away", "sqlite none.db", "not a database URL"
ALL_STATES = "sqlite ledger.db"
PARAMETERS = {"ledger": FILLED, "table_id": f"shop.{HOSTILE}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("api-server")
    fill(f"sqlite:///{folder / 'ledger.db'}")
    connection = {"conn_type": "cdc_ledger", "password": SECRET, "extra": {"sqlite_file": str(folder / "ledger.db")}}
    (folder / "states").mkdir()
    states = fill_states(folder / "states")
    ledgers = [FILLED, states, f"postgresql://ann:{SECRET}@127.0.0.1:1/away", f"sqlite:///{folder / 'none.db'}", "://x"]
    running = ApiServer(
        folder,
        {"AIRFLOW_CONN_CDC_FILLED": json.dumps(connection), "AIRFLOW__CDC__PAGE_LEDGERS": ",".join(ledgers)},
    )
    yield running
    running.stop()


def addresses() -> list[str]:
    """Return the address of every route of the app, with a pipeline and each file that is served."""
    app = build_app()
    listed = []
    for route in app.routes:
        assert isinstance(route, APIRoute), f"{route} is not a route that demands a login"
        assert route.methods == {"GET"}
        path = route.path.replace("{name}", "shop")
        files = [path.replace("{file}", file.name) for file in STATIC.iterdir()] if "{file}" in path else [path]
        listed += [f"/cdc{one}" for one in files]
    return listed


def json_of(server: ApiServer, path: str, user: str = ADMIN, **parameters: str) -> Any:
    status, text, _ = server.get(f"/cdc/api/{path}", user, **parameters)
    assert status == 200, text
    return json.loads(text)


# ---- who may read it


def test_every_route_demands_a_login_and_the_right_to_plugins(server: ApiServer) -> None:
    assert len(addresses()) == 11 + len(list(STATIC.iterdir()))
    for address in addresses():
        anonymous, refused = server.get(address, None, **PARAMETERS), server.get(address, NO_PAGE, **PARAMETERS)
        assert (anonymous[0], refused[0]) == (401, 403), address
        for user in (ADMIN, VIEWER):
            status, text, headers = server.get(address, user, **PARAMETERS)
            assert status == 200, (address, text)
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/", "/static/page.js", "/..%2fpage.py"])
def test_nothing_else_is_served(server: ApiServer, path: str) -> None:
    assert server.get(f"/cdc{path}", None)[0] in (401, 404)
    assert server.get(f"/cdc{path}", ADMIN)[0] == 404


def test_a_user_sees_the_pipelines_of_the_dags_that_he_may_read(server: ApiServer) -> None:
    def seen(user: str) -> tuple[list[str], int]:
        page = json_of(server, "pipelines", user, ledger=FILLED)
        return [line["name"] for line in page["pipelines"]], page["hidden"]

    assert seen(ADMIN) == seen(VIEWER) == (["crashed", "shop", "bank", "by_hand"], 1)
    assert seen(ONE_DAG) == (["bank", "by_hand"], 3)
    assert server.get("/cdc/api/pipelines/bank", ONE_DAG)[0] == 200
    for part in (
        "",
        "/needs",
        "/timeline",
        "/equality",
        "/batches",
        "/tables",
        "/table-history",
        "/schema-changes",
        "/quarantine",
    ):
        assert server.get(f"/cdc/api/pipelines/shop{part}", ONE_DAG, ledger=FILLED, table_id="shop.orders")[0] == 404
        assert server.get(f"/cdc/api/pipelines/none{part}", ADMIN, ledger=FILLED, table_id="x")[0] == 404


# ---- what it never shows


def test_no_answer_has_a_secret_or_a_row_value(server: ApiServer) -> None:
    texts = [server.get(address, ADMIN, **PARAMETERS)[1] for address in addresses()]
    for ledger in (FILLED, ALL_STATES, AWAY, MISSING, NO_URL):
        texts.append(server.get("/cdc/api/pipelines", ADMIN, ledger=ledger)[1])
    for user in (ADMIN, VIEWER):
        texts.append(server.get("/cdc/api/ledgers", user)[1])
    for text in texts:
        assert SECRET not in text and VALUE not in text and "127.0.0.1" not in text and "ann" not in text.split('"')
    assert SECRET not in server.log


def test_the_script_writes_text_nodes_only() -> None:
    script = "".join(file.read_text() for file in sorted(STATIC.glob("*.js")))
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacent|dangerouslySet|document\.write|\beval\b|new Function|srcdoc|\bhref:"
    )
    assert not re.findall(forbidden, script)
    assert "https://" not in script and "http://" not in script


# ---- ledgers that are away


def test_a_ledger_that_cannot_be_read_is_a_state(server: ApiServer) -> None:
    assert json_of(server, "ledgers")["ledgers"] == [FILLED, ALL_STATES, AWAY, MISSING, NO_URL]
    states = {name: json_of(server, "pipelines", ledger=name)["ledger"] for name in (AWAY, MISSING, NO_URL)}
    assert states == {
        AWAY: {"name": AWAY, "state": "unreachable", "code": "ledger.unavailable"},
        MISSING: {"name": MISSING, "state": "missing", "code": "ledger.missing"},
        NO_URL: {"name": NO_URL, "state": "unusable", "code": "configuration"},
    }
    assert json_of(server, "pipelines/shop/timeline", ledger=AWAY)["ledger"]["state"] == "unreachable"
    assert "connection failed" in server.log or "does not answer" in server.log


def test_a_pipeline_is_looked_for_in_all_ledgers(server: ApiServer) -> None:
    assert json_of(server, "pipelines/shop")["ledger"] == {"name": FILLED, "state": "ok"}
    assert server.get("/cdc/api/pipelines", ADMIN, ledger="other")[0] == 404


def test_odd_parameters_are_refused_or_find_nothing(server: ApiServer) -> None:
    shop = "/cdc/api/pipelines/shop"
    for path, parameters in (
        ("/batches", {"limit": "1000"}), ("/batches", {"before": "-1"}), ("/tables", {"state": "x"}),
        ("/timeline", {"since": "yesterday"}), ("/tables", {"offset": "x"}),
    ):  # fmt: skip
        assert server.get(shop + path, ADMIN, **parameters)[0] == 422, path
    assert server.get(f"{shop}%00", ADMIN, ledger=FILLED)[0] == 404
    assert json_of(server, "pipelines/shop/tables", search="\0")["tables"] == []
    assert json_of(server, "pipelines/shop/tables", search="'; DROP TABLE cdc_tables; --")["tables"] == []
    assert json_of(server, "pipelines/shop/timeline", since="2000-01-01T00:00:00Z")["points"]
    versions = json_of(server, "pipelines/shop/table-history", table_id=f"shop.{HOSTILE}")["versions"]
    assert [line["state"] for line in versions] == ["parked"]


# ---- the plug-in


def test_the_plugin_is_light_and_can_be_switched_off() -> None:
    script = """
import json, os, sys
import airflow.sdk
from airflow.providers.common.compat.sdk import conf
from airflow.providers.common.compat.sdk import AirflowPlugin
conf.getboolean("core", "load_examples")
before = set(sys.modules)
from airflow_provider_cdc.plugins.page import CdcPlugin
os.environ["AIRFLOW__CDC__PAGE_ENABLED"] = "False"
CdcPlugin().on_load()
off = len(CdcPlugin.fastapi_apps) + len(CdcPlugin.react_apps)
os.environ["AIRFLOW__API__BASE_URL"] = "https://host/air/"
os.environ["AIRFLOW__CDC__PAGE_ENABLED"] = "True"
CdcPlugin().on_load()
loaded = sorted(name for name in set(sys.modules) - before if not name.startswith("airflow_provider_cdc"))
routes = {app["destination"]: app["url_route"] for app in CdcPlugin.react_apps}
scripts = {app["bundle_url"].partition("?")[0] for app in CdcPlugin.react_apps}
os.environ["AIRFLOW__CDC__PAGE_TABS"] = "False"
CdcPlugin().on_load()
print(json.dumps([loaded, off, len(CdcPlugin.fastapi_apps), routes, list(scripts), len(CdcPlugin.react_apps)]))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    routes = {"nav": "cdc", "dag": "cdc-dag", "task": "cdc-task", "task_instance": "cdc-task-instance"}
    # the script's address is absolute: Airflow 3.1 and 3.2 would take a relative one for the name of a module
    assert json.loads(done.stdout.splitlines()[-1]) == [[], 0, 1, routes, ["/air/cdc/page.js"], 1]


# ---- what a browser sees


@pytest.fixture(scope="module")
def browser(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        running = Browser(tmp_path_factory.mktemp("browser"))
    except NoBrowser as reason:
        pytest.skip(str(reason))
    with running:
        running.log_in(server.url, server.tokens[ADMIN])
        yield running


def text_of(browser: Browser, selector: str) -> str:
    return str(
        browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText).join('\\n')")
    )


@pytest.mark.every(2)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_shows_pipelines_and_one_of_them(
    server: ApiServer, browser: Browser, theme: str, tmp_path: Path
) -> None:
    browser.open(f"{server.url}/plugin/cdc", theme)
    browser.wait_for("document.querySelectorAll('.cdc table').length == 2")
    browser.wait_for("document.querySelectorAll('.cdc-note-bad').length == 2")
    browser.wait_for("document.querySelectorAll('.cdc-welcome').length == 1")
    first = ".cdc-section:first-of-type tbody td:first-child"
    assert text_of(browser, first).split("\n") == ["crashed", "shop", "bank", "by_hand"]
    assert "not reachable from the api-server" in text_of(browser, ".cdc-note-bad")
    browser.screenshot(tmp_path / f"list-{theme}.png")

    browser.evaluate("[...document.querySelectorAll('.cdc tbody a')].find(e => e.innerText == 'shop').click()")
    browser.wait_for("document.querySelectorAll('.cdc-plot .cdc-line').length == 2")  # an hour is not known
    browser.wait_for(
        "document.querySelectorAll('.cdc-section').length == 6 && !document.body.innerText.includes('Loading')"
    )
    link = browser.evaluate("document.querySelector('.cdc td a').pathname")
    assert link == f"/dags/{DAGS[0]}/runs/scheduled__2026-11-20T09%3A00%3A00%2B00%3A00/tasks/sync"
    browser.evaluate("[...document.querySelectorAll('.cdc-link')].find(e => e.innerText == 'shop.orders').click()")
    browser.wait_for("document.body.innerText.includes('+ grade enum(2 labels)')")
    browser.screenshot(tmp_path / f"pipeline-{theme}.png")

    shown = text_of(browser, ".cdc")
    assert r"""shop.<img src=x onerror="document.title='owned'">'\u202e\u001b[31m""" in shown
    assert browser.evaluate("document.querySelectorAll('.cdc img').length") == 0
    assert browser.evaluate("document.title") != "owned"
    assert not [message for message in browser.messages if "cdc" in message], browser.messages


def test_a_dag_and_its_tasks_have_a_tab(server: ApiServer, browser: Browser) -> None:
    one = "[...document.querySelectorAll('.cdc tbody a')].find(e => e.innerText == 'bank')"
    for folder, route in (("tasks/sync", "cdc-task"), ("", "cdc-dag")):
        path = f"/dags/{DAGS[1]}/{folder}/plugin/{route}".replace("//", "/")
        browser.open(f"{server.url}{path}")
        browser.wait_for(f"!!{one}")
        assert "by_hand" not in text_of(browser, ".cdc")
        tab = f"[...document.querySelectorAll('a')].find(e => e.pathname == '{path}')"
        assert browser.evaluate(f"{tab}.innerText.trim()") == "CDC"
    browser.evaluate(f"{one}.click()")
    browser.wait_for(f"document.querySelector('.cdc h1')?.innerText == 'bank' && {LOADED}")
    assert browser.evaluate("document.querySelector('.cdc-path a').pathname") == "/plugin/cdc"


def test_the_colours_follow_the_theme(server: ApiServer, browser: Browser) -> None:
    def colours(theme: str) -> list[str]:
        browser.open(f"{server.url}/plugin/cdc?pipeline=shop&seq=1", theme)
        browser.wait_for(
            "!!document.querySelector('.cdc-row-chosen') && !!document.querySelector('.cdc .cdc-state-parked')"
        )
        parts = ("main.cdc", ".cdc-state-parked", ".cdc th", ".cdc-muted, .cdc dt")
        return [browser.evaluate(f"getComputedStyle(document.querySelector('{part}')).color") for part in parts]

    light, dark = colours("light"), colours("dark")
    assert not set(light) & set(dark)


# ---- pictures of each state


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that has the pictures of a run afterwards."""
    artefacts = os.environ.get("CDC_ARTEFACTS")
    folder = Path(artefacts) / "page" if artefacts else tmp_path_factory.mktemp("page")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


WIDE, NARROW = (1440, 1800), (420, 3000)
LOADED = "!!document.querySelector('.cdc-section') && !document.body.innerText.includes('Loading')"


def overflows(browser: Browser) -> bool:
    return bool(browser.evaluate("(e => e.scrollWidth > e.clientWidth)(document.querySelector('main.cdc'))"))


@pytest.mark.every(3)
@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light")])
def test_each_state_is_a_word_on_every_size_and_theme(
    server: ApiServer, browser: Browser, pictures: Path, size: tuple[int, int], theme: str
) -> None:
    browser.resize(*size)
    browser.open(f"{server.url}/plugin/cdc", theme)
    browser.wait_for("document.querySelectorAll('.cdc table').length == 2")
    browser.wait_for("document.querySelectorAll('.cdc-note-bad').length == 2")
    label = f"{theme}-{size[0]}"
    browser.screenshot(pictures / f"list-{label}.png")
    assert not overflows(browser)
    seen = text_of(browser, ".cdc-section:nth-of-type(2) .cdc-state")
    assert {word.split()[-1] for word in seen.splitlines()} == set(STATES.values())
    assert "✕ 3 failing" in text_of(browser, ".cdc-section:nth-of-type(2) .cdc-strip")
    shown = (REAL, "asks") if (size, theme) != (WIDE, "light") else STATES
    for name in shown:
        address = f"/plugin/cdc?pipeline={name}&ledger={ALL_STATES.replace(' ', '%20')}"
        # as a click on a link does: Airflow's own scripts are not loaded again
        browser.evaluate(f"history.pushState(null, '', '{address}'), dispatchEvent(new PopStateEvent('popstate'))")
        browser.wait_for(f"document.querySelector('.cdc h1')?.innerText == '{name}' && {LOADED}")
        assert not overflows(browser)
        calm = STATES[name] in ("new", "running", "ok")
        if name == "asks":
            lanes = browser.evaluate("[...document.querySelectorAll('.cdc-plot g')].map(e => e.ariaLabel)")
            assert lanes == ["Batches", "DDL", "Decisions", "Stopped tables"]
        assert ("WHAT TO DO" in text_of(browser, ".cdc-needs").upper()) != calm, name
        browser.screenshot(pictures / f"{STATES[name]}-{name}-{label}.png")
    browser.resize(1440, 1000)
    assert not [message for message in browser.messages if "cdc" in message], browser.messages


def test_a_count_filters_by_keyboard(server: ApiServer, browser: Browser) -> None:
    browser.open(f"{server.url}/plugin/cdc")
    browser.wait_for("document.querySelectorAll('.cdc-strip').length == 2")
    browser.evaluate("document.querySelector('.cdc input').focus()")
    browser.press("Tab")
    assert "failing" in browser.evaluate("document.activeElement.innerText")
    browser.press("Enter")
    browser.wait_for("document.querySelectorAll('.cdc-section:first-of-type tbody tr').length == 1")
    assert text_of(browser, ".cdc-section:first-of-type tbody td:first-child") == "crashed"
    assert browser.evaluate("location.search.includes('group=failing')")
