# SPDX-License-Identifier: Apache-2.0
"""List the kinds of catalogs that tables are registered in. A new kind is a module and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class RegistrarKind(NamedTuple):
    """A kind of catalog.

    :param module: registers tables, with ``open_registrar`` (``airflow_provider_cdc.registrars.contract``).
    :param needs_catalog: whether ``catalog`` has to be stated.
    """

    module: str
    needs_catalog: bool = False


REGISTRARS: Mapping[str, RegistrarKind] = {
    "glue": RegistrarKind("airflow_provider_cdc.registrars.glue"),
    "unity": RegistrarKind("airflow_provider_cdc.registrars.unity", needs_catalog=True),
}
"""Kinds of catalogs by ``sink.register.type``."""
