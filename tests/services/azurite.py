# SPDX-License-Identifier: Apache-2.0
"""Azure Storage on this machine: Microsoft's emulator Azurite, which npm installs into the cache at its first start."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

from airflow_provider_cdc.engine.jars import jar_cache
from tests.sample import ALL
from tests.services.process import NotAvailable, Server, Service, free_port, listens

_VERSION = "3.37.0"
_API = "2021-08-06"


class Azurite(Service):
    """A server that is ready when the constructor returns; containers live as long as it does."""

    account = "devstoreaccount1"
    # the emulator's key, which its documents print
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self) -> None:
        program = _installed()
        self._folder = Path(tempfile.mkdtemp(prefix="cdc-azurite-"))
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}/{self.account}"
        options = ["--blobPort", str(port), "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        command = [str(program), *options, "--location", str(self._folder)]
        self._server = Server("Azurite", command, self._folder / "azurite.log")
        self._server.wait_until(lambda: listens(port), timeout=60)

    def create_container(self, name: str) -> str:
        """Create a container; return its `abfss://` address."""
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": _API}
        lines = ["PUT", *[""] * 11, *(f"{key}:{value}" for key, value in headers.items())]
        text = "\n".join([*lines, f"/{self.account}/{self.account}/{name}", "restype:container"])
        signature = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(signature).decode()}"
        address = f"{self.endpoint}/{name}?restype=container"
        with urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers=headers), timeout=30):
            return f"abfss://{name}@{self.account}.dfs.core.windows.net"

    def stop(self) -> None:
        """Stop the server; its containers are gone."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _installed() -> Path:
    """Return the program; install it where that is asked for, since it takes a minute and 190 MB."""
    folder = jar_cache().parent / f"azurite-{_VERSION}"
    program = folder / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None or not ALL:
            raise NotAvailable("No Azure Storage: CDC_SEEDS=2 installs Azurite, where there is npm")
        arguments = ["--prefix", str(folder), "--silent", "--no-audit", "--no-fund", f"azurite@{_VERSION}"]
        subprocess.run([npm, "install", *arguments], check=True)
    return program
