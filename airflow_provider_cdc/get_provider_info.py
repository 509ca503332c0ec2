# SPDX-License-Identifier: Apache-2.0
"""Describe this provider to Airflow.

Nothing is imported: Airflow asks while its configuration is still loading.
"""

_NAME, _PACKAGE = "CDC", "airflow_provider_cdc"

_OPERATORS = (
    "approval",
    "approve",
    "canal",
    "check",
    "doctor",
    "maintain",
    "plan",
    "publish",
    "rebuild",
    "replay",
    "sync",
    "table_state",
    "verify",
)

_CONNECTION_TYPES = [
    {
        "connection-type": "cdc_ledger",
        "hook-class-name": f"{_PACKAGE}.hooks.ledger.CdcLedgerHook",
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
    },
    {
        "connection-type": "cdc_kafka",
        "hook-class-name": f"{_PACKAGE}.hooks.kafka.KafkaProgressHook",
        "hook-name": "Apache Kafka (CDC)",
        "ui-field-behaviour": {
            "hidden-fields": ["schema"],
            "relabeling": {"login": "SASL user", "password": "SASL password"},
            "placeholders": {
                "host": "broker1:9092,broker2:9092",
                "port": "9092, if the host names none",
                "extra": '{"socket.timeout.ms": 10000}',
            },
        },
        "conn-fields": {
            "security_protocol": {
                "label": "Security protocol",
                "schema": {
                    "type": ["string", "null"],
                    "enum": ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", None],
                },
            },
            "sasl_mechanism": {
                "label": "SASL mechanism",
                "schema": {
                    "type": ["string", "null"],
                    "enum": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM", None],
                },
            },
            "ca_file": {
                "label": "CA file",
                "description": "Path on every worker, of the certificates that sign the brokers'",
                "schema": {"type": ["string", "null"]},
            },
            "ca_certificate": {
                "label": "CA certificate",
                "description": "The same as PEM text instead of a file",
                "schema": {"type": ["string", "null"], "format": "multiline"},
            },
        },
    },
    {
        "connection-type": "canal",
        "hook-class-name": f"{_PACKAGE}.hooks.canal.CanalHook",
        "hook-name": "Canal",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "extra"],
            "relabeling": {"login": "User"},
            "placeholders": {"host": "Canal server (canal.serverMode = tcp)", "port": "11111"},
        },
        "conn-fields": {
            "client_id": {
                "label": "Client id",
                "description": "Whose cursor is moved, 1001 by default; one reader of it at a time",
                "schema": {"type": ["string", "null"]},
            },
        },
    },
]

# options of the section [cdc]
_OPTIONS: dict[str, object] = {
    "ledger": {
        "description": "Ledger of pipelines that name none: id of a connection of type ``cdc_ledger``, "
        "``postgres`` or ``sqlite``, or a database URL; ``default`` is ``cdc/ledger.db`` below AIRFLOW_HOME. All "
        "tasks and command lines have to agree.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "cdc_ledger_default",
        "default": "default",
        "sensitive": True,
    },
    "lease_wait": {
        "description": "Seconds for which a sync waits for other runs of its pipeline, unless the task says.",
        "version_added": "0.1.0",
        "type": "float",
        "example": None,
        "default": "900",
    },
    "max_xcom_tables": {
        "description": "Number of tables, of parked and of waiting ones, that a result in XCom names.",
        "version_added": "0.1.0",
        "type": "integer",
        "example": None,
        "default": "50",
    },
    "kafka_look_timeout": {
        "description": "Seconds within which a cluster has to answer a sensor's or trigger's new client.",
        "version_added": "0.1.0",
        "type": "float",
        "example": None,
        "default": "3",
    },
    "kafka_look_threads": {
        "description": "Looks at one cluster or ledger that a triggerer makes at a time.",
        "version_added": "0.1.0",
        "type": "integer",
        "example": None,
        "default": "4",
    },
    "metrics_table_tags": {
        "description": "Whether the metrics of applied rows are sent for each table, with the tag ``table``.",
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "False",
    },
    "openlineage_columns": {
        "description": "Whether lineage has the columns of tables: the facets ``schema`` and ``columnLineage``.",
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "True",
    },
    "page_enabled": {
        "description": "Whether the UI has the page *CDC pipelines*.",
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "True",
    },
    "page_tabs": {
        "description": "Whether DAGs, tasks and task instances have a tab *CDC* with their pipelines. Airflow shows it "
        "at all of them, also at those of other DAGs.",
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "True",
    },
    "page_ledgers": {
        "description": "Ledgers that the page shows, separated by commas: ids of connections of type "
        "``cdc_ledger``, ``postgres`` or ``sqlite``, database URLs, or ``default``. They are only read.",
        "version_added": "0.1.0",
        "type": "string",
        "example": "cdc_ledger_default",
        "default": "default",
        "sensitive": True,
    },
}


def get_provider_info() -> dict[str, object]:
    """Return the provider's description."""

    def modules(*names: str) -> list[dict[str, object]]:
        return [{"integration-name": _NAME, "python-modules": [f"{_PACKAGE}.{name}" for name in names]}]

    return {
        "package-name": "airflow-provider-cdc",
        "name": _NAME,
        "description": "CDC logs in Kafka to lakehouse tables equal to the source, in bounded, repeatable batches.",
        "integrations": [{"integration-name": _NAME, "tags": ["software"]}],
        "operators": modules(*(f"operators.{name}" for name in _OPERATORS)),
        "asset-uris": [
            {
                "schemes": ["cdc"],
                "handler": f"{_PACKAGE}.surface.assets.sanitize_uri",
                "factory": f"{_PACKAGE}.surface.assets.create_asset",
                "to_openlineage_converter": f"{_PACKAGE}.surface.assets.convert_asset_to_openlineage",
            }
        ],
        "sensors": modules(
            "sensors.applied", "sensors.health", "sensors.lag", "sensors.received", "sensors.schema_change"
        ),
        "triggers": modules("triggers.condition", "triggers.lease", "triggers.run", "triggers.watcher"),
        "extra-links": [f"{_PACKAGE}.surface.links.CdcPipelineLink", f"{_PACKAGE}.surface.links.CdcBatchLink"],
        "notifications": [f"{_PACKAGE}.surface.notifier.CdcNotifier"],
        "hooks": modules("hooks.canal", "hooks.kafka", "hooks.ledger", "hooks.pipeline"),
        "connection-types": _CONNECTION_TYPES,
        "config": {"cdc": {"description": "Settings of the CDC provider.", "options": _OPTIONS}},
        "cli": [f"{_PACKAGE}.cli.airflow_commands"],
    }
