# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command line and the functions that carry them out."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.cli import _function
from airflow_provider_cdc.commands.registry import VERBS
from airflow_provider_cdc.commands.verbs import Verb


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_leads_to_a_function(verb: Verb) -> None:
    assert callable(_function(verb.home))
