# SPDX-License-Identifier: Apache-2.0
"""Describe one pipeline: read it from Python or YAML, check it as a whole, compute its fingerprint."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from airflow_provider_cdc.core.config.checks import Checks, kind_of, names_secret
from airflow_provider_cdc.core.config.lake import Lake
from airflow_provider_cdc.core.config.option_kinds import kind_of_option
from airflow_provider_cdc.core.config.policy import RunPolicy, SparkSettings
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.config.sinks.sections import SECTIONS as SINK_SECTIONS
from airflow_provider_cdc.core.config.sinks.sections import Sink
from airflow_provider_cdc.core.config.source import SOURCES, Source
from airflow_provider_cdc.core.config.table_patterns import is_pattern
from airflow_provider_cdc.core.config.tables import TableRules
from airflow_provider_cdc.core.config.target import TargetRule, TargetRules, taken_names, target_rules
from airflow_provider_cdc.core.errors import ConfigurationError, KnownValuesError
from airflow_provider_cdc.core.lake.store_kinds import store_kind

# The name is part of application ids, paths and metrics: none of their separators.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_RAW = re.compile(r"\{%-?\s*raw\s*-?%\}(.*?)\{%-?\s*endraw\s*-?%\}", re.DOTALL)
# of each section its kinds
_SECTIONS: dict[str, tuple[type[Any], ...]] = {
    "source": tuple(SOURCES.values()),
    "sink": tuple(SINK_SECTIONS.values()),
    "lake": (Lake,),
    "tables": (TableRules,),
    "policy": (RunPolicy,),
    "spark": (SparkSettings,),
}

T = TypeVar("T")


@dataclass(frozen=True)
class CdcPipeline:
    """A CDC log and the tables it becomes.

    :param name: identity of the pipeline in the ledger and in the tables' commits; never reuse one for another log.
    :param lake: where change log and documents are; with the tables if it is not stated.
    :param mask_connection: Airflow connection whose password is the salt of masked columns (``mask: hash``).
    :param ledger: ``default`` (a file under AIRFLOW_HOME), a database URL without password, or a connection id.
    :param target: how tables are named in the target: the first rule that matches a name counts, without one it stays
        what it is at the source. Plain data of a rule is accepted.
    """

    name: str
    source: Source
    sink: Sink
    tables: TableRules = field(default_factory=TableRules)
    policy: RunPolicy = field(default_factory=RunPolicy)
    ledger: str = "default"
    spark: SparkSettings = field(default_factory=SparkSettings)
    lake: Lake = field(default_factory=Lake)
    mask_connection: str | None = None
    target: Sequence[TargetRule] = ()

    def __post_init__(self) -> None:
        checks = Checks()
        object.__setattr__(self, "target", _collect(checks, lambda: target_rules(self.target)) or ())
        _check_own(checks, self.name, self.ledger)
        for name, kinds in _SECTIONS.items():
            if not isinstance(getattr(self, name), kinds):
                known = " or ".join(kind.__name__ for kind in kinds)
                checks.problem(name, f"expected a {known}, got {kind_of(getattr(self, name))}")
        if not checks.problems:
            _check_format(checks, self.source, self.tables)
            _check_layouts(checks, self.sink, self.tables)
            _check_salt(checks, self.mask_connection, self.tables)
            _check_spark_writer(checks, (self.sink.root, self.lake.root), self.policy, self.tables)
            stated = [table for table in self.tables.tables if not is_pattern(table) and self.selects(table)]
            checks.problems += taken_names(self.target, stated, safe=self.sink.names == "safe")
        if not getattr(self.source, "spark_reads", True) and getattr(self.policy, "reader", "") == "spark":
            text = f"spark reads Kafka only; leave it out for a source of type {self.source.type}"
            checks.problem("policy.reader", text)
        checks.raise_any()
        if not self.lake.root:
            object.__setattr__(self, "lake", self.sink.own_lake())
        if not self.lake.root:
            raise ConfigurationError(["lake.root: is missing; the sink names no folder for the change log"])

    def selects(self, table: object) -> bool:
        """Return whether a table (``database.table`` or a TableName) takes part."""
        return self.tables.selects(table)

    @property
    def target_names(self) -> TargetRules:
        """Return what names tables in the target."""
        return TargetRules(self.target)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which :meth:`from_dict` builds an equal pipeline."""
        sections = {name: getattr(self, name).document() for name in _SECTIONS}
        target = [rule.document() for rule in self.target]
        salt = {"mask_connection": self.mask_connection} if self.mask_connection else {}
        return {"name": self.name, "ledger": self.ledger, **sections, "target": target, **salt}

    def fingerprint(self) -> str:
        """Return a digest of exactly the settings that decide the content of the tables."""
        deciding = {
            "name": self.name,
            "source": self.source.deciding(),
            "root": self.sink.root,
            **({"names": self.sink.names} if self.sink.names else {}),
            **({"target": [rule.document() for rule in self.target]} if self.target else {}),
            "tables": self.tables.document(),
            "policy": self.policy.deciding(),
        }
        text = json.dumps(deciding, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CdcPipeline:
        """Build from plain data.

        :raises ConfigurationError: names all problems at once.
        """
        if not isinstance(data, Mapping):
            raise ConfigurationError([f"a pipeline is a mapping, got {kind_of(data)}"])
        checks = Checks()
        checks.unknown(data, [f.name for f in fields(cls)])
        name, ledger = data.get("name"), data.get("ledger", "default")
        if "name" not in data:
            checks.problem("name", "is missing")
        _check_own(checks, "unnamed" if "name" not in data else name, ledger)
        built = {section: _section(checks, section, data.get(section)) for section in _SECTIONS}
        built["target"] = _collect(checks, lambda: target_rules(data.get("target", ())))
        checks.raise_any()
        return cls(name=str(name), ledger=str(ledger), mask_connection=data.get("mask_connection"), **built)

    @classmethod
    def from_yaml(cls, path_or_text: str | Path) -> CdcPipeline:
        """Build from a YAML file, or from YAML text. What Jinja's ``raw`` keeps from the operators' templates is plain.

        :param path_or_text: a path or text: what has a line break or does not end in ``.yaml`` or ``.yml`` is text
            unless a file of that name exists.
        :raises ConfigurationError: names all problems at once.
        """
        from airflow_provider_cdc.core.config.reading import read_yaml

        text, where = _text(path_or_text)
        try:
            return cls.from_dict(read_yaml(_RAW.sub(r"\1", text)))
        except ConfigurationError as error:
            raise ConfigurationError(error.problems, where=where) from None

    def to_yaml(self) -> str:
        """Return the pipeline as the text of a YAML file."""
        from airflow_provider_cdc.core.config.reading import write_yaml

        return write_yaml(self.to_dict())


def _check_format(checks: Checks, source: Source, tables: TableRules) -> None:
    """Check what needs the lists of formats and the parser of DDL, which most pipelines do without.

    :raises KnownValuesError: no such format, and nothing else is wrong.
    """
    from airflow_provider_cdc.core.formats.registry import FORMATS, format_names

    unknown = sorted(name for name in source.options if kind_of_option(name) is None)
    for name in unknown:
        checks.problem(f"source.options.{name}", "no format has this option")
    if any(rule.create for rule in tables.tables.values()):
        from airflow_provider_cdc.core.config.stated_tables import stated_problems

        try:
            checks.problems += stated_problems(tables, source.options)
        except ConfigurationError as error:
            checks.problems += error.problems
    if source.format in FORMATS:
        if tables.keep_values_out and not checks.problems:
            from airflow_provider_cdc.core.config.unlogged import unlogged_problems

            checks.problems += unlogged_problems(source, tables)
        return
    if not checks.problems:
        raise KnownValuesError("format", source.format, format_names())
    checks.choice("source.format", source.format, format_names())


def _check_layouts(checks: Checks, sink: Sink, tables: TableRules) -> None:
    """Check what rules ask of tables that not every sink can do."""
    for name, rule in tables.tables.items():
        if rule.partition_by is not None and not sink.partitions:
            sentence = f"a sink of type {sink.type} does not partition tables; state cluster_by"
            checks.problem(f"tables.{name}.partition_by", sentence)
        for key, value in rule.layout.properties.items():
            if problem := sink.property_problem(key, value):
                checks.problem(f"tables.{name}.properties.{key}", problem)


def _check_spark_writer(checks: Checks, roots: Iterable[str], policy: RunPolicy, tables: TableRules) -> None:
    """Note where the Spark writer is to write to a store that it does not reach."""
    kinds = [kind for kind in map(store_kind, roots) if kind is not None and not kind.by_spark]
    writers = {
        "policy.writer": policy.writer,
        **{f"tables.{name}.writer": one.writer for name, one in tables.tables.items()},
    }
    for key in (key for key, writer in writers.items() if kinds and writer == "spark"):
        checks.problem(
            key, f"Spark's writer reaches local disks and S3, not {kinds[0].schemes[0]}://; state task or auto"
        )


def _check_salt(checks: Checks, connection: object, tables: TableRules) -> None:
    """Check that hashes have a salt: without one anybody finds the values of short columns by trying."""
    checks.connection("mask_connection", connection, optional=True)
    hashed = [name for name, rule in tables.tables.items() if rule.columns is not None and rule.columns.needs_salt]
    if hashed and connection is None:
        checks.problem(
            "mask_connection",
            f"is missing: name the connection whose password is the salt, for tables.{hashed[0]}.columns.mask",
        )


def _check_own(checks: Checks, name: object, ledger: object) -> None:
    if checks.text("name", name) and not _NAME.fullmatch(str(name)):
        checks.problem("name", f"{name!r} may hold only letters, digits, '_', '-' and '.', at most 100 of them")
    if checks.text("ledger", ledger) and names_secret("ledger", ledger):
        checks.problem("ledger", "carries a password; put the database into an Airflow connection and name its id here")


def _section(checks: Checks, name: str, data: object) -> Any:
    """Build one section, noting its problems; None when it cannot be built."""
    kind = _SECTIONS[name][0]
    if data is None:
        if required := _required(kind):
            checks.problem(name, f"is missing; it needs {', '.join(required)}")
            return None
        return kind()
    if not isinstance(data, Mapping):
        checks.problem(name, f"expected a mapping, got {kind_of(data)}")
        return None
    if name == "source" and "type" in data:
        data = dict(data)
        name_of_kind = data.pop("type")
        if not isinstance(name_of_kind, str) or name_of_kind not in SOURCES:
            checks.choice("source.type", name_of_kind, SOURCES)
            return None
        kind = SOURCES[name_of_kind]
    if name == "sink" and "type" in data:
        if not isinstance(data["type"], str) or data["type"] not in SINKS:
            checks.choice("sink.type", data["type"], SINKS)
            return None
        kind = SINK_SECTIONS[SINKS[data["type"]].section]
    if name == "tables":
        return _collect(checks, lambda: TableRules.from_document(data))
    known = [f.name for f in fields(kind)]
    mine = Checks(name)
    mine.unknown(data, known)
    missing = [key for key in _required(kind) if key not in data]
    for key in missing:
        mine.problem(key, "is missing")
    checks.problems.extend(mine.problems)
    # Stand-ins let the section check what is there, so that missing keys do not hide other problems.
    values = {"topics": "x", "format": "x", "destination": "x", "folder": "/x", "root": "/"} if missing else {}
    values = {key: value for key, value in values.items() if key in missing}
    return _collect(checks, lambda: kind(**values, **{key: value for key, value in data.items() if key in known}))


def _required(kind: type[Any]) -> list[str]:
    """Return the keys of a section that have no default."""
    return [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING and f.init]


def _collect(checks: Checks, build: Callable[[], T]) -> T | None:
    try:
        return build()
    except ConfigurationError as error:
        checks.problems.extend(error.problems)
        return None


def _text(path_or_text: str | Path) -> tuple[str, dict[str, Any]]:
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        return path_or_text, {}
    path = Path(path_or_text)
    try:
        if isinstance(path_or_text, Path) or path.suffix in (".yaml", ".yml") or path.is_file():
            return path.read_text(encoding="utf-8"), {"file": str(path)}
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ConfigurationError([f"cannot read the pipeline file: {reason}"], where={"file": str(path)}) from None
    return str(path_or_text), {}
