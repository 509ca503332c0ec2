# SPDX-License-Identifier: Apache-2.0
"""The section of a source of files: what it takes, what it refuses, and which pipeline it is."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline, FilesSource, KafkaSource
from airflow_provider_cdc.core.errors import ConfigurationError

SOURCE = {"type": "files", "folder": "/log", "topics": "a", "format": "debezium-json"}


def pipeline(policy: dict[str, Any] | None = None, **changes: Any) -> CdcPipeline:
    document = {"name": "p", "source": {**SOURCE, **changes}, "sink": {"root": "/lake"}, "policy": policy or {}}
    return CdcPipeline.from_dict(document)


def test_it_becomes_itself_again() -> None:
    made = pipeline(folder="file:///log//x/", lines="values", gaps="accept", storage_options={"timeout": 3})
    assert isinstance(made.source, FilesSource) and made.source.folder == "/log/x"
    assert CdcPipeline.from_yaml(made.to_yaml()) == made


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"folder": "log"}, "source.folder: 'log' is neither an absolute path"),
        ({"folder": "sftp://bucket/log"}, "source.folder: 'sftp' is not a known scheme"),
        ({"folder": "s3://key:secret@bucket/log"}, "source.folder: carries a secret"),
        ({"topics": ["../x"]}, "source.topics[0]: '../x' is not a topic name"),
        ({"schema_topic": "a/b"}, "source.schema_topic: 'a/b' is not a topic name"),
        ({"schema_topic": "a", "heartbeat_topic": "a"}, "source.heartbeat_topic: is the schema topic too"),
        ({"lines": "csv"}, "source.lines: 'csv' is not known; known: records, values"),
        ({"lines": "values", "format": "canal-json"}, "source.lines: values are not all that canal-json needs"),
        ({"gaps": "yes"}, "source.gaps: 'yes' is not known; known: fail, accept"),
        ({"connection": "kafka"}, "source.connection: unknown key"),
        ({"storage_options": {"AWS_SECRET_ACCESS_KEY": "x"}}, "source.storage_options.AWS_SECRET_ACCESS_KEY: looks"),
    ],
)
def test_what_cannot_work_is_refused_by_key(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        pipeline(**changes)
    assert [text for text in caught.value.problems if text.startswith(problem)], caught.value.problems


def test_a_missing_folder_is_named() -> None:
    source = {key: value for key, value in SOURCE.items() if key != "folder"}
    with pytest.raises(ConfigurationError, match=r"source\.folder: is missing"):
        CdcPipeline.from_dict({"name": "p", "source": source, "sink": {"root": "/lake"}})


def test_spark_does_not_read_it() -> None:
    with pytest.raises(ConfigurationError, match="leave it out for a source of type files"):
        pipeline({"reader": "spark"})


def test_whole_records_are_the_topics_of_a_cluster_and_values_are_not() -> None:
    same = KafkaSource(topics="a", format="debezium-json").deciding()
    assert pipeline().source.deciding() == pipeline(folder="/other", gaps="accept").source.deciding() == same
    assert pipeline(lines="values").source.deciding() != same
