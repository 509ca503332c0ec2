# SPDX-License-Identifier: Apache-2.0
"""Airflow connections become plain options; what is not on the list is refused, never passed on."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.connections.lookup import ledger_url, sink_options, spark_target, storage_options
from airflow_provider_cdc.core.config import IcebergSink
from airflow_provider_cdc.core.errors import ConfigurationError

from .conftest import Connect

# ---- defining


def test_a_connection_that_is_not_there_says_how_to_define_it() -> None:
    with pytest.raises(ConfigurationError, match="AIRFLOW_CONN_NOWHERE"):
        spark_target("nowhere")


def test_an_unreadable_uri_says_so_instead_of_being_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ODD", "spark://local[2]")
    with pytest.raises(ConfigurationError, match="%5B %5D"):
        spark_target("odd")


def test_unreadable_json_says_so_and_keeps_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_ODD", '{"conn_type": "aws", "password": "s3cret"')
    with pytest.raises(ConfigurationError, match="neither JSON") as refused:
        storage_options("odd")
    assert "s3cret" not in str(refused.value)


def test_a_connection_of_another_type_is_refused(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match=r"'http', expected 'postgres' or 'sqlite'"):
        ledger_url(connect("web", "http"))


# ---- ledger


def test_the_default_ledger_is_a_file_under_airflow_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "/srv/airflow")
    assert ledger_url("default") == "sqlite:////srv/airflow/cdc/ledger.db"


def test_a_url_is_taken_as_it_is() -> None:
    assert ledger_url("postgresql://cdc@db/cdc") == "postgresql://cdc@db/cdc"


def test_a_postgres_connection_becomes_a_url_whatever_its_password_holds(connect: Connect) -> None:
    connect("db", "postgres", {"sslmode": "require"}, host="db", login="me", password="p@:/ ?", schema="cdc")
    url = ledger_url("db")
    assert url == "postgresql://me:p%40%3A%2F%20%3F@db:5432/cdc?sslmode=require"
    from sqlalchemy.engine import make_url

    assert make_url(url).password == "p@:/ ?"


def test_a_sqlite_connection_names_a_file(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger_url(connect("file", "sqlite", host="/data/l.db")) == "sqlite:////data/l.db"
    monkeypatch.setenv("AIRFLOW_CONN_FILE2", "sqlite:////data/l.db")
    assert ledger_url("file2") == "sqlite:////data/l.db"
    with pytest.raises(ConfigurationError, match="names no file"):
        ledger_url(connect("none", "sqlite"))


def test_other_settings_of_the_database_are_refused(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match="'options' is not allowed"):
        ledger_url(connect("db", "postgres", {"options": "-c x"}, host="db"))


# ---- object store


def test_no_connection_means_no_options() -> None:
    assert storage_options(None) == {}


def test_an_aws_connection_becomes_delta_options(connect: Connect) -> None:
    connect("s3", "aws", {"endpoint_url": "http://h:9000", "region_name": "eu-1"}, login="key", password="s3cret")
    assert storage_options("s3") == {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "AWS_ENDPOINT_URL": "http://h:9000",
        "AWS_REGION": "eu-1",
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }


def test_without_a_key_pair_the_environments_credentials_hold_and_https_stays_https(connect: Connect) -> None:
    options = storage_options(connect("s3", "aws", {"endpoint_url": "https://h"}))
    assert options == {"AWS_ENDPOINT_URL": "https://h", "aws_conditional_put": "etag"}


def test_half_a_key_pair_is_refused(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match="key pair"):
        storage_options(connect("s3", "aws", login="key"))


def test_what_would_change_who_we_are_is_refused_not_ignored(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match="'role_arn' is not allowed"):
        storage_options(connect("s3", "aws", {"role_arn": "arn:aws:iam::1:role/x"}))


# ---- catalog


def catalog(connect: Connect, extra: dict[str, str], **fields: str) -> dict[str, str]:
    connect("lakehouse", "iceberg", extra, **fields)
    return sink_options(IcebergSink(connection="lakehouse", namespace="raw"))


def test_a_rest_catalog_gets_its_address_and_its_client(connect: Connect) -> None:
    fields = {"host": "https://catalog", "login": "me", "password": "s3cret"}
    options = catalog(connect, {"warehouse": "w", "scope": "all"}, **fields)
    assert options == {
        "iceberg.type": "rest",
        "iceberg.uri": "https://catalog",
        "iceberg.credential": "me:s3cret",
        "iceberg.warehouse": "w",
        "iceberg.scope": "all",
        "namespace": "raw",
        "writes": "merge-on-read",
        "commit": "table",
    }


def test_a_sql_catalog_gets_the_password_into_its_address(connect: Connect) -> None:
    uri = "postgresql+psycopg://db/catalog"
    options = catalog(connect, {"type": "sql", "uri": uri}, login="me", password="p@:/ ?")
    from sqlalchemy.engine import make_url

    assert make_url(options["iceberg.uri"]).password == "p@:/ ?"


def test_glue_gets_a_key_pair(connect: Connect) -> None:
    options = catalog(connect, {"type": "glue", "glue.region": "eu-1"}, login="key", password="s3cret")
    assert (options["iceberg.glue.access-key-id"], options["iceberg.glue.region"]) == ("key", "eu-1")


@pytest.mark.parametrize(
    "extra",
    [
        {"py-catalog-impl": "os.system", "uri": "https://c"},
        {"py-io-impl": "x", "uri": "https://c"},
        {"s3.retry-strategy-impl": "x", "uri": "https://c"},
        {"auth": "x", "uri": "https://c"},
        {"type": "hive", "uri": "thrift://h"},
        {},
    ],
)
def test_a_catalog_that_would_import_code_or_has_no_address_is_refused(connect: Connect, extra: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        catalog(connect, extra)


# ---- Spark


def test_no_spark_connection_means_local() -> None:
    assert spark_target(None).master == "local[*]"


@pytest.mark.parametrize(
    ("uri", "master", "deploy_mode"),
    [
        ("spark://local%5B2%5D", "local[2]", None),
        ("spark://m1:7077?deploy-mode=cluster", "spark://m1:7077", "cluster"),
        ("spark://yarn?queue=etl", "yarn", None),
        ('{"conn_type": "spark", "host": "local[*]"}', "local[*]", None),
        ('{"conn_type": "spark", "host": "spark://m1", "port": 7077}', "spark://m1:7077", None),
        ('{"conn_type": "spark", "host": "spark://m1:7077,m2:7077"}', "spark://m1:7077,m2:7077", None),
        ('{"conn_type": "spark", "host": "k8s://https://h", "port": 443}', "k8s://https://h:443", None),
        ('{"conn_type": "spark", "host": "local-cluster[1,1,1024]"}', "local-cluster[1,1,1024]", None),
    ],
)
def test_masters_are_read_as_the_spark_provider_reads_them(
    monkeypatch: pytest.MonkeyPatch, uri: str, master: str, deploy_mode: str | None
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_S", uri)
    target = spark_target("s")
    assert (target.master, target.deploy_mode) == (master, deploy_mode)


@pytest.mark.parametrize("host", ["", "mesos://h:5050", "local[x]", "spark://h", "somewhere"])
def test_what_is_no_master_is_refused_instead_of_becoming_yarn(connect: Connect, host: str) -> None:
    with pytest.raises(ConfigurationError, match="not a Spark master"):
        spark_target(connect("s", "spark", host=host))


def test_other_settings_of_spark_are_refused(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match="'spark-home' is not allowed"):
        spark_target(connect("s", "spark", {"spark-home": "/x"}, host="local"))
    with pytest.raises(ConfigurationError, match="neither client nor cluster"):
        spark_target(connect("s", "spark", {"deploy-mode": "x"}, host="local"))


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
def test_a_secret_that_spark_would_not_use_is_refused(connect: Connect, master: str) -> None:
    with pytest.raises(ConfigurationError, match="leave the password empty") as refused:
        spark_target(connect("s", "spark", host=master, password="horse"))
    assert "horse" not in str(refused.value)


@pytest.mark.parametrize(
    "binary", ["evil-submit", "/tmp/spark-submit", "./spark-submit", "spark-submit ", "SPARK-SUBMIT", ""]
)
def test_a_connection_names_no_program_but_spark_submit(connect: Connect, binary: str) -> None:
    with pytest.raises(ConfigurationError, match="spark-binary"):
        spark_target(connect("s", "spark", {"spark-binary": binary}, host="yarn"))


@pytest.mark.parametrize("binary", ["spark-submit", "spark2-submit", "spark3-submit"])
def test_the_names_that_the_spark_provider_knows_are_allowed(connect: Connect, binary: str) -> None:
    assert spark_target(connect("s", "spark", {"spark-binary": binary}, host="yarn")).extra["spark-binary"] == binary


def test_a_kerberos_principal_is_no_path(connect: Connect) -> None:
    target = spark_target(connect("s", "spark", {"principal": "etl/host-1.corp@CORP.COM"}, host="yarn"))
    assert target.extra["principal"] == "etl/host-1.corp@CORP.COM"
    for principal in ("x/../../authorized_keys", "/etc/x", "--conf", "a b"):
        with pytest.raises(ConfigurationError, match="principal must be"):
            spark_target(connect("s", "spark", {"principal": principal}, host="yarn"))
