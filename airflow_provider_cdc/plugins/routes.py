# SPDX-License-Identifier: Apache-2.0
"""Answer the page's requests. Imported by the api-server only; every route demands a login and the right to plugins."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Annotated, Any, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_view
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy.engine import Connection

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.plugins import (
    batch_rows,
    dag_rows,
    equality_rows,
    needs,
    pipeline_rows,
    quarantine_rows,
    schema_change_rows,
    table_rows,
    timeline_rows,
)
from airflow_provider_cdc.plugins.ledgers import PageLedger, page_ledgers, state_of

log = logging.getLogger(__name__)

LONGEST_LAG = timedelta(days=31)
_MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# What is answered here is data, a script or an icon: none of it is a document that may load or embed anything.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}

router = APIRouter(dependencies=[Depends(requires_access_view(AccessView.PLUGINS))])


def build_app() -> FastAPI:
    """Return the app, without FastAPI's own pages, which would answer anybody."""
    app = FastAPI(title="CDC pipelines", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(router)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return app


def _readable_dags(user: GetUserDep) -> set[str]:
    return get_auth_manager().get_authorized_dag_ids(user=user)


Dags = Annotated[set[str], Depends(_readable_dags)]
Ledger = Annotated[str | None, Query(max_length=500)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]
Limit = Annotated[int, Query(ge=1, le=100)]
Before = Annotated[int | None, Query(ge=0, le=2**62)]
Name = Annotated[str | None, Query(max_length=250)]
Search = Annotated[str, Query(max_length=200)]

Work = Callable[[Connection], dict[str, Any]]


def _answer(ledger: PageLedger, work: Work) -> dict[str, Any]:
    """Return what a read of a ledger gives, or why it cannot be read."""
    try:
        with ledger.reading() as connection:
            return {"ledger": state_of(ledger), **work(connection)}
    except CdcError as error:
        log.warning("CDC page: ledger %s: %s", ledger.name, error)
        return {"ledger": state_of(ledger, error)}


def _answer_of(name: str, ledger: str | None, dags: set[str], work: Work) -> JSONResponse:
    """Return what a read of the ledger of a pipeline gives.

    :param ledger: name of the ledger; without it the first one that has the pipeline.
    :raises HTTPException: no ledger has it, or the user may not read its DAG.
    """

    def work_if_readable(connection: Connection) -> dict[str, Any]:
        # PostgreSQL refuses a NUL character.
        readable = "\0" not in name and pipeline_rows.readable_pipelines(connection, dags, name)[0]
        return work(connection) if readable else {"missing": True}

    candidates = list(page_ledgers().values()) if ledger is None else [_ledger(ledger)]
    answers = [_answer(candidate, work_if_readable) for candidate in candidates]
    answers.sort(key=lambda answer: answer["ledger"]["state"] != "ok")  # one that has it before one that is away
    best = next((answer for answer in answers if "missing" not in answer), None)
    if best is None:
        raise HTTPException(404, "there is no such pipeline, or you may not read its DAG")
    return JSONResponse(best)


def _ledger(name: str) -> PageLedger:
    try:
        return page_ledgers()[name]
    except KeyError:
        raise HTTPException(404, "there is no such ledger in [cdc] page_ledgers") from None


@router.get("/api/ledgers")
def ledgers() -> JSONResponse:
    """Return the names of the ledgers."""
    return JSONResponse({"ledgers": list(page_ledgers())})


@router.get("/api/pipelines")
def pipelines(
    ledger: str,
    dags: Dags,
    session: SessionDep,
    search: Search = "",
    group: Literal["failing", "parked", "waiting", "late", "new", "ok"] | None = None,
    dag: Name = None,
    task: Name = None,
    offset: Offset = 0,
    limit: Limit = 50,
) -> JSONResponse:
    """Return pipelines of a ledger, of a DAG, or of a task of one, and the number of those in each group of states."""
    of = None if dag is None else pipeline_rows.DagPart(dag, task)
    options: dict[str, Any] = {"search": search, "group": group, "of": of, "offset": offset, "limit": limit}
    answer = _answer(_ledger(ledger), lambda c: pipeline_rows.pipeline_page(c, dags, **options))
    return JSONResponse({**answer, "dags": dag_rows.dags(session, _dags_of(answer.get("pipelines", ())))})


@router.get("/api/pipelines/{name}")
def pipeline(name: str, dags: Dags, session: SessionDep, ledger: Ledger = None) -> JSONResponse:
    """Return the overview of one pipeline."""

    def work(connection: Connection) -> dict[str, Any]:
        line = pipeline_rows.pipeline(connection, name, dags)
        return {"pipeline": line, "dags": dag_rows.dags(session, _dags_of([line]))}

    return _answer_of(name, ledger, dags, work)


def _dags_of(lines: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the DAGs of pipelines; they are readable."""
    return {line["dag"] for line in lines if line["dag"] is not None}


@router.get("/api/pipelines/{name}/needs")
def pipeline_needs(name: str, dags: Dags, ledger: Ledger = None) -> JSONResponse:
    """Return what of a pipeline needs a person, and what to do."""
    return _answer_of(name, ledger, dags, lambda c: {"needs": needs.needs(c, name, dags, f"{name}.yaml")})


@router.get("/api/pipelines/{name}/timeline")
def timeline(name: str, dags: Dags, ledger: Ledger = None, since: datetime | None = None) -> JSONResponse:
    """Return a pipeline's lag over time, and what happened."""
    now = datetime.now(UTC)
    begin = now - timedelta(days=1) if since is None else since if since.tzinfo else since.replace(tzinfo=UTC)
    begin = max(begin, now - LONGEST_LAG)
    return _answer_of(name, ledger, dags, lambda c: timeline_rows.timeline(c, name, dags, begin, now))


@router.get("/api/pipelines/{name}/batches")
def batches(name: str, dags: Dags, ledger: Ledger = None, before: Before = None, limit: Limit = 25) -> JSONResponse:
    """Return batches of a pipeline."""
    work = lambda c: batch_rows.batches(c, name, dags, before=before, limit=limit)  # noqa: E731
    return _answer_of(name, ledger, dags, work)


@router.get("/api/pipelines/{name}/tables")
def tables(
    name: str,
    dags: Dags,
    ledger: Ledger = None,
    state: Literal["ok", "waiting", "parked", "dropped"] | None = None,
    search: Search = "",
    offset: Offset = 0,
    limit: Limit = 50,
) -> JSONResponse:
    """Return tables of a pipeline."""
    if "\0" in search:
        return _answer_of(name, ledger, dags, lambda c: {"tables": [], "total": 0})
    work = lambda c: table_rows.tables(c, name, state=state, search=search, offset=offset, limit=limit)  # noqa: E731
    return _answer_of(name, ledger, dags, work)


@router.get("/api/pipelines/{name}/table-history")
def table_history(
    name: str,
    table_id: Annotated[str, Query(max_length=2000)],
    dags: Dags,
    ledger: Ledger = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """Return how one table changed; its id is a parameter because names of tables may hold anything."""
    if "\0" in table_id:
        raise HTTPException(404, "there is no such table")
    work = lambda c: table_rows.table_history(c, name, table_id, before=before, limit=limit)  # noqa: E731
    return _answer_of(name, ledger, dags, work)


@router.get("/api/pipelines/{name}/schema-changes")
def schema_changes(
    name: str,
    dags: Dags,
    ledger: Ledger = None,
    before: Before = None,
    limit: Limit = 25,
    snapshot: bool = False,
) -> JSONResponse:
    """Return schema changes of a pipeline."""
    options: dict[str, Any] = {"before": before, "limit": limit, "snapshot": snapshot}
    return _answer_of(name, ledger, dags, lambda c: schema_change_rows.schema_changes(c, name, **options))


@router.get("/api/pipelines/{name}/equality")
def equality(name: str, dags: Dags, ledger: Ledger = None) -> JSONResponse:
    """Return whether all tables equal the source at one time, and what speaks against it."""
    return _answer_of(name, ledger, dags, lambda c: equality_rows.equality(c, name))


@router.get("/api/pipelines/{name}/quarantine")
def quarantine(name: str, dags: Dags, ledger: Ledger = None, before: Before = None) -> JSONResponse:
    """Return where records in quarantine are, and their codes."""
    return _answer_of(name, ledger, dags, lambda c: quarantine_rows.quarantine(c, name, before=before))


@router.get("/{file}")
def static_file(file: str) -> Response:
    """Return a script, the styles or an icon."""
    content = _static_files().get(file)
    if content is None:
        raise HTTPException(404)
    # The address carries the release; a browser asks again all the same, for checkouts that are edited.
    media = _MEDIA[PurePath(file).suffix]
    return Response(content, media_type=media, headers={"Cache-Control": "private, no-cache"})


@cache
def _static_files() -> dict[str, bytes]:
    folder = files("airflow_provider_cdc.plugins").joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if PurePath(file.name).suffix in _MEDIA}
