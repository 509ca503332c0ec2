# SPDX-License-Identifier: Apache-2.0
"""Name the options of single modes: each is a key of a table's rule, and of one mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airflow_provider_cdc.core.config.checks import Checks


class ModeOption(NamedTuple):
    """An option of one mode.

    :param makes: whether rows are made otherwise with it.
    :param check: notes what is wrong with its value.
    """

    mode: str
    makes: bool
    check: Callable[[Checks, str, object], object]


MODE_OPTIONS: Mapping[str, ModeOption] = {
    "before": ModeOption("append", True, Checks.flag),
    "soft_delete_days": ModeOption("soft_delete", False, Checks.positive),
    "track": ModeOption("history", True, lambda checks, name, value: checks.texts(name, value, least=1)),
}
"""By their keys in a table's rule."""


def check_mode_options(checks: Checks, mode: str, options: Mapping[str, Any]) -> None:
    """Note options that are of another mode, or wrong.

    :param options: those that are stated.
    """
    for name, value in options.items():
        option = MODE_OPTIONS[name]
        if option.mode == mode:
            option.check(checks, name, value)
        else:
            checks.problem(name, f"is an option of mode {option.mode}, and the table's is {mode}")


def made_by(mode: str, options: Mapping[str, Any]) -> str:
    """Return what a mode and its options say of rows: of equal texts they are equal."""
    makes = [f"{name}: {value}" for name, value in sorted(options.items()) if MODE_OPTIONS[name].makes]
    return f"{mode} ({', '.join(makes)})" if makes else mode
