# SPDX-License-Identifier: Apache-2.0
"""Offer the ledger as an Airflow connection with a form and a test button."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from airflow_provider_cdc.core.errors import CdcError

if TYPE_CHECKING:
    from airflow_provider_cdc.core.ledger import Ledger


class CdcLedgerHook(BaseHook):
    """Open the ledger of a connection.

    :param ledger_conn_id: connection of type ``cdc_ledger``, ``postgres`` or ``sqlite``.
    """

    conn_name_attr = "ledger_conn_id"
    default_conn_name = "cdc_ledger_default"
    conn_type = "cdc_ledger"
    hook_name = "CDC ledger"

    def __init__(self, ledger_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.ledger_conn_id = ledger_conn_id

    def get_conn(self) -> Ledger:
        """Return the ledger."""
        from airflow_provider_cdc.core.ledger import Ledger
        from airflow_provider_cdc.hooks.connections import ledger_url

        return Ledger(ledger_url(self.ledger_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Return for the connection form whether the database answers."""
        try:
            return True, f"{len(self.get_conn().pipelines())} pipelines"
        except CdcError as error:
            return False, str(error)
