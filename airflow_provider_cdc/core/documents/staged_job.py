# SPDX-License-Identifier: Apache-2.0
"""A job that lies on the lake, for whatever platform runs it, and the secrets that go another way."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from airflow_provider_cdc.core.documents.hadoop_credentials import CREDENTIALS_VARIABLE, secret_of
from airflow_provider_cdc.core.documents.job import SECRETS_VARIABLE, JobDocument
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.plain_data import Document, from_plain

SECRETS_FILE_VARIABLE = f"{SECRETS_VARIABLE}_FILE"
"""Environment variable with the path of a file that holds what :data:`SECRETS_VARIABLE` would."""
CREDENTIALS_NAME = "airflow-cdc"
"""Name of the same among Hadoop's credentials."""

Secrets = dict[str, dict[str, str]]


@dataclass(slots=True)
class StagedJob(Document):
    """A job on the lake.

    :param made_by: version of the package that made it: only the same one runs it.
    :param secrets: names of the secrets that it needs, such as ``kafka.sasl.password``.
    """

    made_by: str
    secrets: list[str]
    job: JobDocument

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`.

        :raises ConfigurationError: another version of this package made it.
        """
        from airflow_provider_cdc import __version__

        if data["made_by"] != __version__:
            error = ConfigurationError([f"the job was made by release {data['made_by']}, here is {__version__}"])
            error.hint = "install the same release of airflow-provider-cdc on both sides, then stage the request again"
            raise error
        return from_plain(cls, data)

    def demand_secrets(self, secrets: Secrets) -> None:
        """Refuse to run without a secret that the job needs.

        :raises ConfigurationError: names those that are missing.
        """
        by_role = "storage.", "sink."  # the platform's own identity may open the stores; they say so where not
        missing = [name for name in {*self.secrets} - {*secret_names(secrets)} if not name.startswith(by_role)]
        if missing:
            error = ConfigurationError([f"secrets are missing: {', '.join(sorted(missing))}"])
            error.hint = f"let the platform set {SECRETS_VARIABLE}, or {SECRETS_FILE_VARIABLE} to a file with it"
            raise error


def secret_names(secrets: Secrets) -> list[str]:
    """Return the names of secrets, sorted."""
    return sorted(f"{kind}.{name}" for kind, values in secrets.items() for name in values)


def take_secrets() -> Secrets:
    """Take a job's secrets out of this process's environment, the file that it names, or Hadoop's credentials.

    They are a JSON document, plain or in base64, which no shell changes.

    :raises ConfigurationError: they cannot be read; the text says nothing of them.
    """
    text, file = os.environ.pop(SECRETS_VARIABLE, ""), os.environ.get(SECRETS_FILE_VARIABLE, "")
    credentials = "" if text or file else os.environ.get(CREDENTIALS_VARIABLE, "")
    name = SECRETS_FILE_VARIABLE if file and not text else CREDENTIALS_VARIABLE if credentials else SECRETS_VARIABLE
    try:
        if credentials:
            with open(credentials, "rb") as opened_credentials:
                text = (secret_of(opened_credentials.read(), CREDENTIALS_NAME) or b"").decode()
        if not text and file:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
        text = text.strip()
        document = json.loads(text if text.startswith("{") else base64.b64decode(text, validate=True) or "{}")
        return {kind: {key: str(value) for key, value in values.items()} for kind, values in document.items()}
    except OSError as error:
        raise ConfigurationError([f"{name}: the file cannot be read: {error.strerror}"]) from None
    except (ValueError, AttributeError):
        raise ConfigurationError([f"{name}: expected a JSON document of documents, plain or in base64"]) from None
