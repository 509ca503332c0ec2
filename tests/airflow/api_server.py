# SPDX-License-Identifier: Apache-2.0
"""A real api-server in a process of its own, with users of several rights; run as a script it is that process."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

from tests.airflow.installed import installed_path

if TYPE_CHECKING:
    from tests.services.process import Server

DAGS = ("shop_hourly", "bank_hourly")
ADMIN, VIEWER, ONE_DAG, NO_PAGE = "ada", "vic", "ona", "nil"


class RestrictingAuthManager(SimpleAuthManager):
    """Users as the simple auth manager has them; of the viewers, one reads one DAG, and one sees no plugins."""

    def is_authorized_view(self, *, access_view: AccessView, user: Any) -> bool:
        """Return whether a user may see a part of the UI."""
        allowed = super().is_authorized_view(access_view=access_view, user=user)
        return allowed and not (user.username == NO_PAGE and access_view == AccessView.PLUGINS)

    def is_authorized_dag(self, *, user: Any, details: Any = None, **more: Any) -> bool:
        """Return whether a user may read a DAG."""
        if user.username == ONE_DAG and details is not None and details.id != DAGS[1]:
            return False
        return super().is_authorized_dag(user=user, details=details, **more)


class ApiServer:
    """A running api-server.

    :param folder: its home, and its log.
    :param config: further ``AIRFLOW__…`` variables.
    """

    def __init__(self, folder: Path, config: Mapping[str, str]) -> None:
        from tests.services.process import Server, free_port

        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "home").mkdir()
        passwords = folder / "passwords.json"
        users = (ADMIN, VIEWER, ONE_DAG, NO_PAGE)
        passwords.write_text(json.dumps({user: user for user in users}))
        roles = ",".join(f"{user}:{'admin' if user == ADMIN else 'viewer'}" for user in users)
        environment = {
            **os.environ,
            "PYTHONPATH": installed_path(folder / "site"),
            "AIRFLOW_HOME": str(folder / "home"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__AUTH_MANAGER": f"{__name__}.{RestrictingAuthManager.__name__}",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": roles,
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__API_AUTH__JWT_SECRET": "of-the-tests-and-long-enough-for-the-algorithm-that-signs-the-tokens",
            **config,
        }
        command = [sys.executable, "-m", "tests.airflow.api_server", str(self.port)]
        self._server: Server = Server("api-server", command, folder / "api-server.log", env=environment)
        self._server.wait_until(lambda: self.get("/api/v2/version", None)[0] == 200, timeout=180)
        self.tokens = {user: self._token(user) for user in users}

    def _token(self, user: str) -> str:
        body = json.dumps({"username": user, "password": user}).encode()
        request = urllib.request.Request(f"{self.url}/auth/token", body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(json.load(answer)["access_token"])

    def get(self, path: str, user: str | None, **parameters: str) -> tuple[int, str, Mapping[str, str]]:
        """Return status, text and headers of an answer.

        :param user: whose token is sent; None for nobody's.
        """
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        headers = {} if user is None else {"Authorization": f"Bearer {self.tokens[user]}"}
        request = urllib.request.Request(f"{self.url}{path}{query}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers
        except OSError:
            return 0, "", {}

    @property
    def log(self) -> str:
        """Return what the server printed."""
        return self._server.log.read_text()

    def stop(self) -> None:
        """Stop the server; nobody waits for the connections that a browser holds open."""
        self._server.stop(timeout=2)


def main(port: str) -> None:
    """Make the metadata database with some DAGs, then run the api-server."""
    from airflow.__main__ import main as airflow
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    initdb()
    soon = datetime.now(UTC) + timedelta(minutes=20)
    with create_session() as session:
        session.add(DagBundleModel(name="tests"))
        session.flush()
        for dag_id in DAGS:
            dag = DagModel(dag_id=dag_id, bundle_name="tests", is_stale=False, is_paused=dag_id == DAGS[1])
            dag.timetable_summary, dag.next_dagrun_create_after = "0 * * * *", soon
            session.add(dag)
    with DAG(DAGS[1]) as shown:
        EmptyOperator(task_id="sync")
    SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(shown), bundle_name="tests")
    sys.argv = ["airflow", "api-server", "--port", port, "--host", "127.0.0.1", "--apps", "core", "--workers", "1"]
    airflow()


if __name__ == "__main__":
    main(*sys.argv[1:])
