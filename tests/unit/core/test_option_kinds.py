# SPDX-License-Identifier: Apache-2.0
"""Every option says what a change of it means for tables that there are."""

from __future__ import annotations

import importlib
from dataclasses import fields

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRule
from airflow_provider_cdc.core.config.option_kinds import FORMAT_OPTIONS, POLICIES, TABLE_RULES, kind_of_option
from airflow_provider_cdc.core.ddl.server import OPTIONS as SERVER_OPTIONS
from airflow_provider_cdc.core.formats.registry import FORMATS


def options_of(name: str) -> set[str]:
    return {*importlib.import_module(FORMATS[name]).WireFormat.options, *SERVER_OPTIONS}


def test_the_list_has_exactly_the_policies_and_the_rules_of_a_table() -> None:
    assert {item.name for item in fields(RunPolicy)} == set(POLICIES)
    assert {item.name for item in fields(TableRule)} - set(POLICIES) == set(TABLE_RULES)


@pytest.mark.parametrize("name", FORMATS)
def test_every_option_of_a_format_is_in_the_list(name: str) -> None:
    assert {option for option in options_of(name) if kind_of_option(option) is None} == set()


def test_the_list_has_no_option_that_no_format_has() -> None:
    known = {option for name in FORMATS for option in options_of(name)}
    families = {f"{option.partition('.')[0]}.*" for option in known}
    assert set(FORMAT_OPTIONS) - known - families == set()
