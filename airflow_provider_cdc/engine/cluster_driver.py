# SPDX-License-Identifier: Apache-2.0
"""A driver that runs in the cluster: its job lies on the lake, and YARN brings it its secrets as credentials."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from xml.etree import ElementTree

from airflow_provider_cdc import __version__
from airflow_provider_cdc.connections.lookup import SparkTarget
from airflow_provider_cdc.core.config import SparkSettings
from airflow_provider_cdc.core.documents import (
    ALLOW_UNENCRYPTED,
    CREDENTIALS_NAME,
    CREDENTIALS_VARIABLE,
    SECRETS_VARIABLE,
    JobDocument,
    StagedJob,
    StagedPlace,
    credentials_file,
    secret_names,
)
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.json_documents import json_bytes, json_data
from airflow_provider_cdc.engine.task import EngineTask, conf_text

_PRIVATE = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": "privacy"}
_CLIENT = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_KILL_SECONDS = 60.0
_SUBMITTED = re.compile(r"INFO YarnClientImpl: Submitted application (\w+)")
LOGGING = """\
logger.client.name = org.apache.hadoop.yarn.client.api.impl.YarnClientImpl
logger.client.level = info
"""
"""What the client of YARN logs with: the line above."""


class ClusterDriver:
    """The driver of one batch, from the job on the lake to its result.

    :raises ConfigurationError: its secrets have no private way to it.
    """

    def __init__(self, task: EngineTask, settings: SparkSettings, target: SparkTarget) -> None:
        self._on_yarn = target.master.startswith("yarn")
        self._demand_private_way(task, settings, target)
        job = JobDocument.from_document(json_data(task.job.read_bytes()))
        home = f"{job.lake_root}/_cdc/{job.pipeline}/jobs/{job.seq}/{job.ledger}-{token_hex(8)}"
        self._there = StagedPlace(home, {**job.storage, **task.secrets.get("storage", {})})
        self._there.stage(StagedJob(__version__, secret_names(task.secrets), job))
        self._task, self._application, self._killed = task, "", False
        options = (part for item in job.storage.items() for part in ("--store", "=".join(item)))
        self.arguments = [self._there.address, *options]

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of spark-submit: with a file of secrets, without what leads to this machine's code.

        :param own: that of a driver on this machine.
        """
        passed_on = {name: value for name, value in own.items() if name not in (SECRETS_VARIABLE, "PYTHONPATH")}
        if any(self._task.secrets.values()):
            file = self._task.scratch / "credentials"
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
                opened.write(credentials_file(CREDENTIALS_NAME, json_bytes(self._task.secrets)))
            passed_on[CREDENTIALS_VARIABLE] = str(file)
        return passed_on

    def hear(self, line: str) -> None:
        """Take a line of spark-submit."""
        started = _SUBMITTED.search(line)
        if started is not None:
            self._application = started[1]
            self._task.on_application(started[1])

    def kill(self, binary: str, environment: Mapping[str, str]) -> None:
        """End the application on YARN, which goes on without spark-submit.

        :param binary: spark-submit; Hadoop's client is in its Spark.
        """
        if not self._application or self._killed:
            return
        self._killed = True
        command = [str(Path(shutil.which(binary) or binary).resolve().with_name("spark-class")), _CLIENT]
        try:
            subprocess.run(
                [*command, "application", "-kill", self._application],
                env=dict(environment), capture_output=True, check=True, timeout=_KILL_SECONDS,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            self._task.say(f"{self._application} may go on: it could not be ended")

    def collect(self, say: Callable[[str], None]) -> None:
        """Put the result where the engine's task expects it.

        :param say: takes a line where there is none.
        """
        result, status = self._there.result(), self._there.status()
        if status.get("application") and not self._application:
            self._task.on_application(status["application"])
        if result is not None:
            self._task.result.write_bytes(json_bytes(result.document()))
        else:
            say(f"the driver's own lines are in the cluster's log of {self._application or 'its application'}")

    def _demand_private_way(self, task: EngineTask, settings: SparkSettings, target: SparkTarget) -> None:
        """Refuse secrets where others in the cluster would see them.

        YARN exports variables in a shell script, which prints and runs what is in quotes (Hadoop's
        launch_container.sh); Kubernetes keeps them in a ConfigMap of the driver. Credentials are in a file that YARN
        removes with the container; where Spark logs in with a keytab itself, it does not read ours.
        """
        kinds = sorted(kind for kind, secrets in task.secrets.items() if secrets)
        if not kinds:
            return
        text = f"connection {settings.connection}: deploy-mode cluster would show secrets of this batch"
        use = "use deploy-mode client, or logins without secrets"
        if not self._on_yarn or any(name.endswith("keytab") for name in (*target.extra, *settings.conf)):
            raise ConfigurationError([f"{text} ({', '.join(kinds)}) to others in the cluster: {use}"])
        conf = {name: conf_text(value) for name, value in settings.conf.items()}
        if conf.get(ALLOW_UNENCRYPTED) != "true" and not _is_private(conf):
            error = ConfigurationError(
                [f"{text} ({', '.join(kinds)}) to the network: Hadoop's calls are not encrypted"]
            )
            stated = " and ".join(f"{name}: {value}" for name, value in _PRIVATE.items())
            error.hint = (
                f"set {stated} in core-site.xml, or on a network that you trust {ALLOW_UNENCRYPTED}: true; or {use}"
            )
            raise error


def _is_private(conf: Mapping[str, str]) -> bool:
    """Return whether Hadoop's calls are encrypted, as its configuration on this machine says."""
    stated: dict[str, str] = {}
    folder = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR") or ""
    with suppress(OSError, ElementTree.ParseError):
        for entry in ElementTree.parse(Path(folder) / "core-site.xml").iter("property"):
            stated[entry.findtext("name", "").strip()] = entry.findtext("value", "").strip()
    return all(conf.get(f"spark.hadoop.{name}", stated.get(name)) == value for name, value in _PRIVATE.items())
