# SPDX-License-Identifier: Apache-2.0
"""Read and write YAML as people expect it: one document, no duplicate keys, no code; only this module imports yaml."""

from __future__ import annotations

from typing import Any

import yaml

from airflow_provider_cdc.core.errors import ConfigurationError

try:  # libyaml's takes a tenth of the time, and DAG folders read their pipelines at every parse
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]


class _Loader(SafeLoader):
    """Load YAML safely and reject duplicate keys, of which plain YAML readers silently take one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float, bool)) and key in seen:
                raise ConfigurationError([f"{key}: is given twice (line {key_node.start_mark.line + 1})"])
            if key_node.tag != "tag:yaml.org,2002:merge" and isinstance(key, (str, int, float, bool)):
                seen.add(key)
        return super().construct_mapping(node, deep=deep)


def read_yaml(text: str) -> Any:
    """Return the one document of a YAML text as plain data.

    :raises ConfigurationError: it is not YAML; the sentence names line and column, never the line's content.
    """
    try:
        # The loader derives from SafeLoader: plain data only.
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigurationError([f"the text is not YAML{position}: {error.problem or error.context}"]) from None
    except yaml.YAMLError:
        raise ConfigurationError(["the text is not YAML"]) from None


def write_yaml(data: dict[str, Any]) -> str:
    """Return plain data as a YAML text."""
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
