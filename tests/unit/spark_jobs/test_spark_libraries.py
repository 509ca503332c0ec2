# SPDX-License-Identifier: Apache-2.0
"""Check which properties of Spark follow from the options of a store."""

from __future__ import annotations

import pytest

from spark_jobs.sinks.delta.spark_libraries import s3a_settings

_KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
_STATED = {"access.key": "id", "secret.key": "secret"}
_FOUND = {"aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"}
_TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"aws_conditional_put": "etag"}, _FOUND),
        ({"AWS_REGION": "eu-west-1"}, {"endpoint.region": "eu-west-1", **_FOUND}),
        ({"AWS_DEFAULT_REGION": "a", "AWS_REGION": "b"}, {"endpoint.region": "b", **_FOUND}),
        (_KEYS, _STATED),
        (
            {**_KEYS, "AWS_SESSION_TOKEN": "t"},
            {**_STATED, "session.token": "t", "aws.credentials.provider": _TEMPORARY},
        ),
        (
            {"AWS_ENDPOINT_URL": "http://s:9000", "AWS_ALLOW_HTTP": "true"},
            {"endpoint": "http://s:9000", "path.style.access": "true", "connection.ssl.enabled": "false", **_FOUND},
        ),
        (
            {"AWS_ENDPOINT_URL": "https://s"},
            {"endpoint": "https://s", "path.style.access": "true", "connection.ssl.enabled": "true", **_FOUND},
        ),
    ],
)
def test_properties_of_hadoops_client(options: dict[str, str], expected: dict[str, str]) -> None:
    assert s3a_settings(options) == {f"spark.hadoop.fs.s3a.{key}": value for key, value in expected.items()}
