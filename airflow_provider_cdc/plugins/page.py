# SPDX-License-Identifier: Apache-2.0
"""Register the page with Airflow's UI. Every process of Airflow imports this module, so it imports nothing heavy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin, conf

from airflow_provider_cdc import __version__

URL_PREFIX = "/cdc"

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
    """Add the page *CDC pipelines*; ``[cdc] page_enabled = False`` leaves it out."""

    name = "cdc"

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Register app and page."""
        if not conf.getboolean("cdc", "page_enabled", fallback=True):
            return
        cls.fastapi_apps = [{"app": LazyApp(), "url_prefix": URL_PREFIX, "name": "CDC pipelines"}]
        # Relative: the UI resolves it against its base, which may be below a path of the host.
        folder = URL_PREFIX.removeprefix("/")
        cls.react_apps = [
            {
                "name": "CDC pipelines",
                "bundle_url": f"{folder}/page.js?v={__version__}",
                "destination": "nav",
                "category": "browse",
                "url_route": "cdc",
                "icon": f"{folder}/icon.svg?v={__version__}",
                "icon_dark_mode": f"{folder}/icon-dark.svg?v={__version__}",
            }
        ]
