# SPDX-License-Identifier: Apache-2.0
"""Secrets in a pipeline: refused, and not repeated."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.config import SparkSettings
from tests.unit.core.pipelines import minimal, problems_of


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"topics": "t", "format": "f", "options": {"sasl.password": "s3cret"}}},
        {"sink": {"root": "/d", "storage_options": {"AWS_SECRET_ACCESS_KEY": "s3cret"}}},
        {"sink": {"root": "/d", "storage_options": {"AWS_ACCESS_KEY_ID": "s3cret"}}},
        {"sink": {"root": "/d", "storage_options": {"azure_storage_sas_key": "s3cret", "x": "1"}}},
        {"sink": {"root": "s3://key:s3cret@bucket/lake"}},
        {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "s3cret"}}},
        {"spark": {"conf": {"spark.foo": "jdbc:x?password=s3cret"}}},
        {"spark": {"conf": {"spark.foo": "-----BEGIN RSA PRIVATE KEY-----s3cret"}}},
        {"ledger": "postgresql://user:s3cret@host/db"},
        {"ledger": "postgresql://user:s3c/s3cret@host/db"},
        {"ledger": "postgresql://user:s3 c@s3cret@host/db"},
        {"ledger": "postgresql://user:s3:s3cret?#@host/db"},
        {"ledger": "postgresql://host/db?user=u&password=s3cret"},
        {"ledger": "postgresql://host/db?sslpassword=s3cret"},
        {"source": {"topics": "t", "format": "f", "connection": "kafka://me:s3cret@broker"}},
        {"sink": {"root": "/d", "storage_connection": "aws://key:s3cret@"}},
        {"sink": {"root": "s3://key:s3/s3cret@bucket/lake"}},
        {"spark": {"connection": "spark://me:s3cret@master:7077"}},
        *(
            {"sink": {"root": "/d", "storage_options": {key: "s3cret"}}}
            for key in (
                "bearer",
                "bearer_token",
                "token",
                "aws_session_token",
                "sessionToken",
                "azure_storage_master_key",
                "azure_storage_connection_string",
                "aws_sse_customer_key_base64",
                "google_service_account_key",
                "pass",
                "db_pass",
                "passcode",
                "sas",
                "sas_token",
                "apiKey",
                "authorization",
            )
        ),
        *(
            {"sink": {"root": "/d", "storage_options": {"x": value}}}
            for value in (
                "https://h/c?sv=2022&sig=s3cret",
                "https://h/o?X-Amz-Security-Token=s3cret",
                "https://s3cret@h/x",
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=s3cret",
                "Bearer s3cret",
                "Basic s3cret",
                "Authorization: s3cret",
                "AKIAIOSFODNN7EXAMPLE",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.s3cret",
                "ghp_s3cret0123456789012345678901234567",
                "-----BEGIN OPENSSH PRIVATE KEY-----s3cret",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----s3cret",
            )
        ),
        *(
            {"spark": {"conf": {key: "s3cret"}}}
            for key in (
                "spark.kubernetes.authenticate.oauthToken",
                "spark.ssl.keyPassword",
                "spark.ssl.keyStorePassword",
                "spark.authenticate.secret",
                "spark.hadoop.fs.s3a.encryption.key",
                "spark.hadoop.fs.s3a.session.token",
                "spark.hadoop.fs.azure.account.key.a.blob.core.windows.net",
                "spark.x.accessToken",
                "spark.x.pwd",
            )
        ),
        {"spark": {"conf": {"spark.driver.extraJavaOptions": "-Da=b -Djavax.net.ssl.trustStorePassword=s3cret"}}},
        {"spark": {"conf": {"spark.executorEnv.OPTS": "--api-key = s3cret"}}},
    ],
)
def test_secrets_are_sent_to_a_connection_and_not_repeated(change: dict[str, Any]) -> None:
    (problem,) = problems_of(minimal(**change))
    assert "connection" in problem and "s3cret" not in problem


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.hadoop.fs.s3a.aws.credentials.provider": "org.example.Provider"},
        {"spark.security.credentials.kafka.enabled": False},
        {"spark.kubernetes.driver.secrets.spark-secret": "/etc/secrets"},
        {"spark.authenticate.secret.file": "/etc/secret"},
        {"spark.sql.shuffle.partitions": 4},
        {"spark.kubernetes.authenticate.driver.oauthTokenFile": "/var/run/token"},
        {"spark.ssl.rpc.privateKey": "/etc/key.pem"},
        {"spark.kafka.clusters.a.sasl.token.mechanism": "SCRAM-SHA-512"},
        {"spark.redaction.regex": "(?i)secret|password|token"},
        {"spark.jars": "s3://bucket/a:b/c@d.jar,https://host:8443/x.jar"},
        {"spark.driver.extraJavaOptions": "-Dhttp.proxyHost=proxy -Dhttp.proxyPort=3128 -Dkeytab=/etc/x"},
        {"spark.kubernetes.container.image": "registry:5000/team/image@sha256:0a1b"},
        {"spark.kerberos.keytab": "/etc/cdc.keytab"},
        {"spark.sql.catalog.x.token.enabled": True},
    ],
)
def test_options_that_only_speak_of_secrets_are_allowed(conf: dict[str, Any]) -> None:
    assert SparkSettings(conf=conf).conf == conf


@pytest.mark.parametrize(
    "member",
    [
        {"spark_env_vars": {"AIRFLOW_CDC_SECRETS": "s3cret"}},
        {"spark_env_vars": {"X": '{"kafka": {"sasl.password": "s3cret"}}'}},
        {"spark_env_vars": {"AIRFLOW_CDC_SECRETS": "{{secrets/cdc/shop}} or s3cret"}},
        {"env": [{"name": "AIRFLOW_CDC_SECRETS", "value": "s3cret"}]},
    ],
)
def test_a_platforms_document_has_no_secret_at_any_depth(member: dict[str, Any]) -> None:
    spark = {"submit": "databricks", "run": {"tasks": [{"new_cluster": member}]}}
    (problem,) = problems_of(minimal(spark=spark))
    assert problem.startswith("spark.run.tasks[0].new_cluster.") and "s3cret" not in problem


def test_a_platforms_document_may_name_secrets() -> None:
    run = {
        "spark_env_vars": {"AIRFLOW_CDC_SECRETS": "{{secrets/cdc/shop}}", "TOKEN": "{{ secrets/my-scope/a_b }}"},
        "secrets": [{"name": "cdc-shop", "path": "/etc/cdc", "secretType": "Generic"}],
        "env": [
            {"name": "AIRFLOW_CDC_SECRETS_FILE", "value": "/etc/cdc/secrets"},
            {"name": "AIRFLOW_CDC_SECRETS", "valueFrom": {"secretKeyRef": {"name": "cdc-shop", "key": "secrets"}}},
        ],
        "volumes": [{"name": "cdc", "secret": {"secretName": "cdc-shop"}}],
    }
    settings = SparkSettings(submit="databricks", run=run)
    assert SparkSettings(**settings.document()) == settings


def test_a_document_of_a_run_is_a_platforms() -> None:
    assert problems_of(minimal(spark={"run": {"tasks": []}})) == [
        "spark.run: describes the run of a platform: state submit, too"
    ]
    (problem,) = problems_of(minimal(spark={"submit": "livy"}))
    assert problem.startswith("spark.submit: 'livy' is not known; known: spark-submit, databricks")


# ---- behaviour
