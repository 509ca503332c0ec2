# SPDX-License-Identifier: Apache-2.0
"""Describe this provider to Airflow.

Nothing is imported: Airflow asks while its configuration is still loading.
"""

_NAME = "CDC"


def get_provider_info() -> dict[str, object]:
    """Return the provider's description."""
    package = "airflow_provider_cdc"

    def modules(*names: str) -> list[dict[str, object]]:
        return [{"integration-name": _NAME, "python-modules": [f"{package}.{name}" for name in names]}]

    return {
        "package-name": "airflow-provider-cdc",
        "name": _NAME,
        "description": "CDC logs in Kafka to lakehouse tables equal to the source, in bounded, repeatable batches.",
        "integrations": [{"integration-name": _NAME, "tags": ["software"]}],
        "operators": modules("operators.sync"),
        "sensors": modules("sensors.applied", "sensors.health", "sensors.lag", "sensors.received"),
        "triggers": modules(
            "triggers.applied",
            "triggers.health",
            "triggers.lag",
            "triggers.lease",
            "triggers.received",
            "triggers.watcher",
        ),
        "hooks": modules("hooks.kafka", "hooks.ledger"),
        "connection-types": [
            {
                "connection-type": "cdc_ledger",
                "hook-class-name": f"{package}.hooks.ledger.CdcLedgerHook",
                "hook-name": "CDC ledger",
                "ui-field-behaviour": {
                    "hidden-fields": ["extra"],
                    "relabeling": {"schema": "Database"},
                    "placeholders": {"host": "PostgreSQL server; empty for a SQLite file", "port": "5432"},
                },
                "conn-fields": {
                    "sslmode": {
                        "label": "SSL mode",
                        "schema": {
                            "type": ["string", "null"],
                            "enum": ["disable", "allow", "prefer", "require", "verify-ca", "verify-full", None],
                        },
                    },
                    "sqlite_file": {
                        "label": "SQLite file",
                        "description": "Absolute path instead of a server; serves the processes of one machine",
                        "schema": {"type": ["string", "null"]},
                    },
                },
            }
        ],
        "cli": [f"{package}.cli.airflow_commands"],
    }
