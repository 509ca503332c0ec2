# SPDX-License-Identifier: Apache-2.0
"""Collect the problems of a configuration: one sentence per problem, each beginning with its YAML key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError

# Keys whose value is a secret in any of the systems that get options (librdkafka, object stores, Spark, Hadoop),
# with or without separators: api.key, api_key, apiKey.
_SECRET_KEY = re.compile(
    r"passw|passphrase|passcode|secret|jaas|(?:^|[._-])(?:pwd|pass|pw)$|token$|credentials?$|(?:^|[._-])sas(?:[._-]|$)"
    r"|bearer|authorization|signature$|(?:^|[._-])key$|connection[._-]?string"
    r"|(?:access|account|private|api|storage|master|customer|encryption|signing|service[._-]?account)[._-]?key"
    r"|ssl[._-]key[._-]pem|AIRFLOW_CONN_",
    re.IGNORECASE,
)
# Kubernetes options of these families name a secret object, files name a path: neither is the secret itself.
_SECRET_REFERENCE = re.compile(
    r"^spark\.kubernetes\..*\.(secrets\.|secretKeyRef\.)|ssl\..*privateKey$|[._-](file|location|path|provider)$",
    re.IGNORECASE,
)
# what names a secret of Kubernetes, and a value that Databricks resolves
_KEY_REFERENCE = re.compile(r"\w+KeyRefs?")
_NAMES_SECRET = re.compile(r"secret(Type|Name)=[\w.-]+|[^=]*=\{\{\s*secrets/[\w./@-]+\s*\}\}")
_SECRET_VALUE = re.compile(
    # user:password@ as SQLAlchemy reads it: up to the "@", whatever the password contains
    r"://[^:/@\s]*:[^@]+@|\bhttps?://[^/@\s]+@|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|^(?:bearer|basic|token|negotiate)\s+\S|\bauthorization\s*:"
    # by their form: ids of AWS keys, JSON web tokens, tokens of GitHub, GitLab, Slack and Google
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\beyJ[\w-]{8,}\.[\w-]+\.|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{20,}|\bxox[abprs]-\w"
    r"|\bAIza[\w-]{30,}",
    re.IGNORECASE,
)
# name=value inside of a value: parameters of an address, parts of a connection string, options of a JVM; JSON's "name":
_ASSIGNMENT = re.compile(r"([A-Za-z][\w.-]*)(?:\s*=|[\"']\s*:)\s*[^\s&;,]")


def names_secret(key: str, value: object) -> bool:
    """Return whether an option is, or carries, a secret."""
    return (_is_secret(key) and not isinstance(value, bool)) or carries_secret(value)


def carries_secret(value: object) -> bool:
    """Return whether a text holds a secret: a password in an address, a private key, a token, ``password=...``."""
    if not isinstance(value, str):
        return False
    return _SECRET_VALUE.search(value) is not None or any(map(_is_secret, _ASSIGNMENT.findall(value)))


def _is_secret(key: str) -> bool:
    # sig is the signature of a SAS address
    known = _SECRET_KEY.search(key) is not None or key.lower() == "sig"
    return known and _SECRET_REFERENCE.search(key) is None


def kind_of(value: object) -> str:
    """Return the name of a value's type in the words of YAML, never the value itself."""
    words: list[tuple[type, str]] = [
        (bool, "true/false"), (int, "a whole number"), (float, "a number"), (str, "text"), (list, "a list"),
        (tuple, "a list"), (Mapping, "a mapping"),
    ]  # fmt: skip
    if value is None:
        return "nothing"
    return next((word for kind, word in words if isinstance(value, kind)), type(value).__name__)


def as_text(value: object) -> str:
    """Return an option as text; YAML gives numbers and true/false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Checks:
    """Problems of one section.

    :param section: YAML key of the section; empty for the top level.
    """

    section: str = ""
    problems: list[str] = field(default_factory=list)

    def key(self, name: str) -> str:
        """Return the YAML key of a field."""
        return f"{self.section}.{name}" if self.section else name

    def problem(self, name: str, sentence: str) -> None:
        """Note what is wrong with one field."""
        self.problems.append(f"{self.key(name)}: {sentence}")

    def unknown(self, keys: Collection[Any], known: Collection[str]) -> None:
        """Note keys that do not exist, with the closest known key and all known keys."""
        for key in keys:
            if key in known:
                continue
            near = difflib.get_close_matches(str(key), list(known), n=1)
            guess = f"did you mean {near[0]!r}? " if near else ""
            self.problem(str(key), f"unknown key; {guess}known: {', '.join(sorted(known))}")

    def text(self, name: str, value: object, *, optional: bool = False) -> bool:
        """Note a field that is not text or is empty; return whether it is usable."""
        if optional and value is None:
            return False
        if not isinstance(value, str):
            self.problem(name, f"expected text, got {kind_of(value)}")
            return False
        if not value.strip():
            self.problem(name, "is empty")
            return False
        return True

    def connection(self, name: str, value: object, *, optional: bool = False) -> bool:
        """Note a field that is not the id of an Airflow connection; return whether it is usable."""
        if not self.text(name, value, optional=optional):
            return False
        if carries_secret(value):
            self.problem(name, "carries a secret; define an Airflow connection and name its id here")
            return False
        return True

    def choice(self, name: str, value: object, known: Collection[str]) -> None:
        """Note a field that is not one of the known words."""
        if not isinstance(value, str) or value not in known:
            shown = repr(value) if isinstance(value, (str, bool, int)) else kind_of(value)
            self.problem(name, f"{shown} is not known; known: {', '.join(known)}")

    def integer(self, name: str, value: object, *, least: int = 0, optional: bool = False) -> None:
        """Note a field that is not a whole number of at least ``least``."""
        if optional and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int):
            self.problem(name, f"expected a whole number, got {kind_of(value)}")
        elif value < least:
            self.problem(name, f"{value} is below {least}")

    def positive(self, name: str, value: object) -> None:
        """Note a field that is not a number above 0."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.problem(name, f"expected a number, got {kind_of(value)}")
        elif not 0 < value < float("inf"):
            self.problem(name, f"{value} is not above 0")

    def flag(self, name: str, value: object) -> None:
        """Note a field that is neither true nor false."""
        if not isinstance(value, bool):
            self.problem(name, f"expected true or false, got {kind_of(value)}")

    def options(self, name: str, value: object, *, home: str) -> None:
        """Note a mapping that is not flat, or that carries a secret.

        :param home: the right place for secrets.
        """
        if not isinstance(value, Mapping):
            self.problem(name, f"expected a mapping, got {kind_of(value)}")
            return
        for key, item in value.items():
            path = f"{name}.{key}"
            if not isinstance(key, str):
                self.problem(path, f"expected text as key, got {kind_of(key)}")
            elif not key.strip():
                self.problem(path, "the name is empty")
            elif not isinstance(item, (str, int, float, bool)):
                self.problem(path, f"expected text, a number or true/false, got {kind_of(item)}")
            elif names_secret(key, item):
                self.problem(path, f"looks like a secret; it belongs in {home}")

    def plain_document(self, name: str, value: object, *, home: str) -> bool:
        """Note a mapping that is not plain data, or carries a secret where its name would do; return if it is usable.

        :param home: the right place for secrets.
        """
        before = len(self.problems)
        if not isinstance(value, Mapping):
            self.problem(name, f"expected a mapping, got {kind_of(value)}")
        else:
            self._plain(name, "", value, home)
        return len(self.problems) == before

    def _plain(self, path: str, key: str, value: object, home: str) -> None:
        if isinstance(value, Mapping):
            if _KEY_REFERENCE.fullmatch(key):
                return
            named = str(value.get("name", "")) if "value" in value else ""  # a variable of a container
            for member, item in value.items():
                self._plain(f"{path}.{member}", named if named and member == "value" else str(member), item, home)
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                self._plain(f"{path}[{index}]", key, item, home)
        elif value is not None and not isinstance(value, (str, int, float, bool)):
            self.problem(path, f"expected plain data, got {kind_of(value)}")
        elif isinstance(value, str) and names_secret(key, value) and not _NAMES_SECRET.fullmatch(f"{key}={value}"):
            self.problem(path, f"looks like a secret; it belongs in {home}")

    def texts(self, name: str, value: object, *, least: int = 0) -> bool:
        """Note a field that is not a list of distinct, non-empty texts; return whether it is usable."""
        if not isinstance(value, (list, tuple)):
            self.problem(name, f"expected a list of texts, got {kind_of(value)}")
            return False
        if len(value) < least:
            self.problem(name, "is empty")
            return False
        good = [self.text(f"{name}[{index}]", item) for index, item in enumerate(value)]
        doubled = sorted({item for item in value if isinstance(item, str) and list(value).count(item) > 1})
        if doubled:
            self.problem(name, f"named twice: {', '.join(doubled)}")
        return all(good) and not doubled

    def raise_any(self) -> None:
        """Raise one error with all problems, if there are any."""
        if self.problems:
            raise ConfigurationError(self.problems)
