# SPDX-License-Identifier: Apache-2.0
"""Register the page with Airflow's UI. Every process of Airflow imports this module, so it imports nothing heavy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin, conf

from airflow_provider_cdc import __version__
from airflow_provider_cdc.plugins.page_address import ui_folder

URL_PREFIX = "/cdc"
_TABS = ("dag", "task", "task_instance")

_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


class LazyApp:
    """Build the page's FastAPI app at its first request, which only the api-server gets."""

    def __init__(self) -> None:
        self._app: _App | None = None

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Answer a request, as ASGI defines it."""
        if self._app is None:
            self._app = await asyncio.to_thread(_build)
        await self._app(scope, receive, send)


def _build() -> _App:
    from airflow_provider_cdc.plugins.routes import build_app

    return build_app()


class CdcPlugin(AirflowPlugin):
    """Add the page *CDC pipelines*, and a tab with a DAG's part of it to each DAG, task and task instance.

    ``[cdc] page_enabled = False`` leaves both out, ``page_tabs = False`` the tabs: Airflow shows a tab at all or none.
    """

    name = "cdc"

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Register app and page."""
        if not conf.getboolean("cdc", "page_enabled", fallback=True):
            return
        if not hasattr(AirflowPlugin, "react_apps"):  # before 3.1 nothing can show what the app answers
            return
        cls.fastapi_apps = [{"app": LazyApp(), "url_prefix": URL_PREFIX, "name": "CDC pipelines"}]
        cls.react_apps = [{**_react_app("CDC pipelines", "nav", "cdc"), "category": "browse"}]
        if conf.getboolean("cdc", "page_tabs", fallback=True):
            cls.react_apps += [_react_app("CDC", one, f"cdc-{one.replace('_', '-')}") for one in _TABS]


def _react_app(name: str, destination: str, route: str) -> dict[str, str]:
    """Return what Airflow has to know to show the page at a destination; its script registers it under the name."""
    # From the root of the host: Airflow 3.1 and 3.2 import the script without resolving its address against their base.
    folder = f"{ui_folder()}{URL_PREFIX}"
    return {
        "name": name,
        "bundle_url": f"{folder}/page.js?v={__version__}",
        "destination": destination,
        "url_route": route,
        "icon": f"{folder}/icon.svg?v={__version__}",
        "icon_dark_mode": f"{folder}/icon-dark.svg?v={__version__}",
    }
