# SPDX-License-Identifier: Apache-2.0
"""An S3 service on this machine: moto's server, in an environment of its own because it cannot share Airflow's."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.request
from pathlib import Path

import pyarrow.fs

from tests.services.process import NotAvailable, Server, Service, free_port, listens

_ENVIRONMENT = Path(__file__).parents[2] / ".venv-s3"


class S3(Service):
    """A server that is ready when the constructor returns; buckets live as long as it does.

    Any key and secret are accepted.
    """

    region = "us-east-1"
    access_key = "test"
    secret_key = "test"

    def __init__(self) -> None:
        own = _ENVIRONMENT / "bin" / "moto_server"
        program = str(own) if own.exists() else shutil.which("moto_server")
        if program is None:
            raise NotAvailable("No S3 service: moto_server is missing; `make setup` installs it into .venv-s3.")
        self._folder = Path(tempfile.mkdtemp(prefix="cdc-s3-"))
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._server = Server(
            "S3", [program, "-H", "127.0.0.1", "-p", str(port)], self._folder / "s3.log", env=environment
        )
        self._server.wait_until(lambda: listens(port), timeout=60)

    def create_bucket(self, name: str) -> str:
        """Create a bucket; returns its `s3://` address."""
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return f"s3://{name}"

    @property
    def storage_options(self) -> dict[str, str]:
        """Return what delta-rs needs to work on it; the conditional put makes concurrent commits safe."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "aws_conditional_put": "etag",
        }

    @property
    def filesystem(self) -> pyarrow.fs.S3FileSystem:
        """The same as a pyarrow file system."""
        return pyarrow.fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            region=self.region,
            endpoint_override=self.endpoint,
            scheme="http",
        )

    def stop(self) -> None:
        """Stop the server; its buckets are gone."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
