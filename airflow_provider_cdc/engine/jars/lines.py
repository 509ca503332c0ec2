# SPDX-License-Identifier: Apache-2.0
"""Choose locked jars by the line of Spark that they are for: ``NAME-LINE.lock``, as ``spark-4.1.lock``.

Delta and Spark's own connectors use what Spark does not promise to keep, so each line has jars of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_cdc.core.errors import ConfigurationError

_FOLDER = Path(__file__).parent
_CORE = re.compile(r"spark-core_[\d.]+-(\d+\.\d+)\.")
_PURPOSES = {"spark": "the Spark reader and the Spark writer", "s3a": "the Spark writer on S3"}


def spark_line(home: Path) -> str | None:
    """Return the line of the Spark in a folder, as ``4.1``; None where there is none."""
    matches = (_CORE.match(jar.name) for jar in (home / "jars").glob("spark-core_*.jar"))
    return next((match[1] for match in matches if match), None)


def lock_of(name: str, line: str | None) -> Path:
    """Return the lock file of the jars for a line of Spark.

    :param name: ``spark``, the jars of the Spark reader and writer; ``s3a``, those with which the writer reaches S3.
    :param line: None where it is not known.
    :raises ConfigurationError: no jars are known for it.
    """
    lock = _FOLDER / f"{name}-{line}.lock"
    if lock.is_file():
        return lock
    known = ", ".join(sorted(file.stem.removeprefix(f"{name}-") for file in _FOLDER.glob(f"{name}-*.lock")))
    spark = f"Spark {line}" if line else "a Spark of unknown version"
    error = ConfigurationError([f"spark.conf: no jars of {spark} are known for {_PURPOSES[name]}; known: {known}"])
    error.hint = "name all jars in spark.jars or spark.jars.packages, or set policy.writer and policy.reader to task"
    raise error
