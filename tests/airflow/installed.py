# SPDX-License-Identifier: Apache-2.0
"""Know the Airflow of the tests, and count as installed, whether or not the package is."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import airflow
import pytest

from airflow_provider_cdc import __version__

ROOT = Path(__file__).parents[2]


def has_airflow(*version: int) -> bool:
    """Return whether Airflow is of a release or newer."""
    return tuple(int(number) for number in airflow.__version__.split(".")[: len(version)]) >= version


def needs_airflow(*version: int) -> pytest.MarkDecorator:
    """Skip a test of what Airflow has since a release."""
    return pytest.mark.skipif(not has_airflow(*version), reason=f"since Airflow {'.'.join(map(str, version))}")


def installed_path(folder: Path) -> str:
    """Return a PYTHONPATH on which the package counts as installed, whether or not it is.

    :param folder: gets the package's metadata.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / f"airflow_provider_cdc-{__version__}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {__version__}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return os.pathsep.join([str(folder), str(ROOT)])
