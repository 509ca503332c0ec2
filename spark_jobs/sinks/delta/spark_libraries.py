# SPDX-License-Identifier: Apache-2.0
"""Give Spark what it needs to write Delta tables: check its libraries, set up Hadoop's client for S3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark import SparkContext

_DELTA = "io.delta.sql.DeltaSparkSessionExtension", "Delta's library (io.delta:delta-spark)"
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem", "Hadoop's client for S3 (org.apache.hadoop:hadoop-aws)"
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_OF_ENVIRONMENT = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_SETTINGS = {
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_DEFAULT_REGION": "endpoint.region",
    "AWS_REGION": "endpoint.region",
    "AWS_ACCESS_KEY_ID": "access.key",
    "AWS_SECRET_ACCESS_KEY": "secret.key",
    "AWS_SESSION_TOKEN": "session.token",
}


def s3a_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return what storage options mean as properties of Spark; Spark redacts those that are secrets.

    Without a key pair the credentials are those that Amazon's SDK finds in the environment, as for delta-rs: variables,
    a profile, a role. Hadoop's client alone knows no profiles and no roles of pods.

    :param options: storage options in delta-rs' names.
    """
    settings = {f"spark.hadoop.fs.s3a.{key}": options[name] for name, key in _SETTINGS.items() if options.get(name)}
    endpoint = options.get("AWS_ENDPOINT_URL", "")
    if endpoint:  # delta-rs addresses buckets of a stated endpoint in the path, too
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    provider = _TEMPORARY if options.get("AWS_SESSION_TOKEN") else _OF_ENVIRONMENT
    if options.get("AWS_SESSION_TOKEN") or not options.get("AWS_ACCESS_KEY_ID"):
        settings["spark.hadoop.fs.s3a.aws.credentials.provider"] = provider
    return settings


def session_settings(options: Mapping[str, str], *, on_s3: bool) -> dict[str, str]:
    """Return Spark's properties for sessions that read and write Delta tables.

    :param options: storage options in delta-rs' names.
    """
    return {
        **(s3a_settings(options) if on_s3 else {}),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def demand_libraries(job: JobDocument, context: SparkContext) -> None:
    """Refuse a batch that Spark may have to write, if it lacks a library for that.

    :param context: with a session.
    :raises ConfigurationError: names what is missing.
    """
    writers = {job.policy.writer, *(rule.writer for rule in job.tables.tables.values())}
    large = any(state.spark_may_write for state in job.states) and job.spark_reaches_sink
    if "spark" not in writers and not large:
        return
    loadable = context._jvm.org.apache.spark.util.Utils.classIsLoadable
    needed = [_DELTA, *([_S3A] if job.on_s3 else [])]
    missing = [name for class_name, name in needed if not loadable(class_name)]
    if missing:
        error = ConfigurationError([f"spark.conf: Spark lacks {' and '.join(missing)}, which its writer needs"])
        error.hint = (
            "leave delta-spark and hadoop-aws out of spark.jars and spark.jars.packages, then both are fetched; "
            "or name all jars that Spark needs there, or set policy.writer to task"
        )
        raise error
