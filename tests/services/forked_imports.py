# SPDX-License-Identifier: Apache-2.0
"""Import what a command and its inline engine import; each command is a fork of the process that did so."""

from __future__ import annotations

import gc
import importlib

from airflow_provider_cdc.serving.imports import import_batches

import_batches("commands")
importlib.import_module("tests.services.forked")
gc.freeze()
