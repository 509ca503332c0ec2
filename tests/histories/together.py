# SPDX-License-Identifier: Apache-2.0
"""Let every table be resolved together with others that can be, as only small tables of one layout are otherwise."""

from __future__ import annotations

import pytest

from spark_jobs.driver import table_tasks
from spark_jobs.tasks import tables_together


def resolve_all_together(patch: pytest.MonkeyPatch) -> None:
    """Let one task have all tables, and resolve single ones in the same way."""
    patch.setattr(table_tasks, "_bundles", lambda tasks, _: [list(tasks)] if tasks else [])
    patch.setattr(tables_together, "_FEW", 1)
