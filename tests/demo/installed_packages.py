# SPDX-License-Identifier: Apache-2.0
"""Stand for ``pip install``: succeed where all that is to be installed is installed, with its extras."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import metadata, requires, version

from packaging.requirements import Requirement


def missing(requirements: Sequence[str]) -> list[str]:
    """Return what a requirement names and its distribution does not have."""
    problems = []
    for requirement in map(Requirement, requirements):
        extras = set(metadata(requirement.name).get_all("Provides-Extra") or ())
        problems += [f"{requirement.name} has no extra {extra}" for extra in requirement.extras - extras]
        for needed in map(Requirement, requires(requirement.name) or ()):
            marker = needed.marker
            if marker is not None and any(marker.evaluate({"extra": extra}) for extra in requirement.extras):
                assert needed.specifier.contains(version(needed.name)), needed
    return problems


if __name__ == "__main__":
    assert sys.argv[1] == "install", sys.argv
    sys.exit("; ".join(missing(sys.argv[2:])) or 0)
