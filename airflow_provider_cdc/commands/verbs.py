# SPDX-License-Identifier: Apache-2.0
"""Describe verbs and their arguments, as argparse and Airflow take them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import datetime
from typing import Any


def instant(text: str) -> datetime | None:
    """Return the time that a text states."""
    from airflow_provider_cdc.batch.arguments import parse_instant

    return parse_instant(text)


instant.__name__ = "ISO time"


def option(text: str) -> tuple[str, str]:
    """Return name and value of an option.

    :raises ValueError: it has not both.
    """
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise ValueError(text)
    return key, value


option.__name__ = "K=V"


def seconds(text: str) -> float:
    """Return a number of seconds above zero."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


seconds.__name__ = "number above zero"


def positive(text: str) -> int:
    """Return a whole number above zero."""
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


positive.__name__ = "whole number above zero"


class OrEmpty(argparse.Action):
    """Store an empty text for an option without its value; Airflow's ``Arg`` takes no ``const``."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Store what was stated, or the empty text."""
        setattr(namespace, self.dest, values or "")


def record(text: str) -> Any:
    """Return the record that a text names."""
    from airflow_provider_cdc.commands.quarantine import record_id

    return record_id(text)


record.__name__ = "TOPIC/PARTITION:OFFSET"


class Argument:
    """One argument of a verb, as argparse takes it."""

    def __init__(self, *flags: str, **settings: Any) -> None:
        self.flags, self.settings = flags, settings


def switch(flag: str, **settings: Any) -> Argument:
    """Return an argument that is stated or not."""
    return Argument(flag, action="store_true", **settings)


@dataclass(frozen=True)
class Verb:
    """One verb.

    :param home: module and function that run it, imported when the verb is used.
    """

    name: str
    home: str
    help: str
    arguments: tuple[Argument, ...]
