# SPDX-License-Identifier: Apache-2.0
"""Define what running a batch needs of a platform. A module of one has ``open_platform``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_provider_cdc.core.config.platform_kinds import PLATFORMS
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, UnavailableError
from airflow_provider_cdc.core.printable import printable

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import SparkSettings

_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Submission:
    """Describe what a platform is to run; nothing of it is a secret.

    :param token: name of this attempt: lower case, at most 63 characters.
    :param arguments: of the job.
    :param main: the Python file to start, on the lake; ``payload`` the zip with its code.
    :param conf: Spark's properties.
    """

    token: str
    arguments: Sequence[str]
    main: str
    payload: str
    conf: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunState:
    """State of a run.

    :param ended: nothing of it runs any more.
    :param text: state in the platform's own words, for people.
    """

    ended: bool
    text: str


class Platform(Protocol):
    """Runs batches. All methods block, for seconds at most, and each call may be repeated.

    :raises UnavailableError: ``platform.unavailable``, from each method: the platform does not serve at the moment.
    :raises ConfigurationError: from each method: the platform refuses the request or the login.
    """

    def submit(self, job: Submission) -> str:
        """Start the run of a token, and return its id; of the run that this token has already."""
        ...

    def state(self, run: str) -> RunState:
        """Return the state of a run; one that the platform no longer knows has ended."""
        ...

    def cancel(self, run: str) -> None:
        """End a run; one that has ended stays as it is."""
        ...


def provider_missing(platform: str, package: str) -> ConfigurationError:
    """Return the error of a platform whose provider is not installed."""
    error = ConfigurationError([f"spark.submit: {platform} needs {package}, which is not installed"])
    error.hint = f"pip install 'airflow-provider-cdc[{platform}]'"
    return error


def refused(platform: str, text: str, status: int | None) -> CdcError:
    """Return the error of a platform that did not do what was asked.

    :param text: its own words.
    :param status: HTTP status of its answer, None where it gave none.
    """
    text = f"{platform} did not do what was asked: {printable(text)[:_SHOWN]}"
    where = {"platform": platform, **({"status": status} if status is not None else {})}
    if status is not None and 400 <= status < 500 and status not in (408, 429):
        return ConfigurationError([text], where=where)
    return UnavailableError("platform.unavailable", text, where=where, hint="run again when it answers")


def open_platform(settings: SparkSettings) -> Platform:
    """Return the platform that a pipeline's section ``spark`` names.

    :raises ConfigurationError: its provider is not installed, or ``spark.run`` lacks what it needs.
    """
    platform: Platform = importlib.import_module(PLATFORMS[settings.submit]).open_platform(settings)
    return platform
