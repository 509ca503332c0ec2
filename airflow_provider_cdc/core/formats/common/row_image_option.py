# SPDX-License-Identifier: Apache-2.0
"""Read the option ``binlog_row_image`` of formats whose inserts lack columns that their statements did not name."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.errors import ConfigurationError

ROW_IMAGE = "binlog_row_image"
ROW_IMAGE_MEANING = "full, minimal or noblob, as the server has it: whether a column that no row has is left out"
_LACK_DEFAULTS: Mapping[str | None, bool | None] = {None: None, "full": None, "minimal": True, "noblob": True}


def inserts_lack_defaults(options: Mapping[str, str] | None) -> bool | None:
    """Return whether a column that inserts lack has its default; None where other rows have to show it.

    :raises ConfigurationError: the option has another value.
    """
    value = (options or {}).get(ROW_IMAGE)
    if value not in _LACK_DEFAULTS:
        raise ConfigurationError([f"source.options.{ROW_IMAGE}: {value!r} is none of full, minimal, noblob"])
    return _LACK_DEFAULTS[value]
