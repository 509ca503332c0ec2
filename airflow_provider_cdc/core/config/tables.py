# SPDX-License-Identifier: Apache-2.0
"""Select the tables of a pipeline, and override its policy for single ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks, as_text, kind_of
from airflow_provider_cdc.core.config.column_rules import ColumnRules, check_expression
from airflow_provider_cdc.core.config.mode_options import MODE_OPTIONS, check_mode_options, made_by
from airflow_provider_cdc.core.config.partition_rules import partition_problems, partition_rules
from airflow_provider_cdc.core.config.policy import CHOICES, RunPolicy
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.config.table_patterns import ambiguous, by_precedence, is_pattern, most_specific
from airflow_provider_cdc.core.config.verify import check_verify

PATTERNS = ("include", "exclude")
MIRROR = "mirror"
TABLE_MODES = (MIRROR, "soft_delete", "append", "history")
"""Which rows a stored table may have."""
_YAML_WORDS: dict[str, tuple[Any, str]] = {"zero_dates": (None, "null"), "verify": (False, "off")}  # unquoted words
# keys that override nothing of the policy
_OF_TABLE = {"create", "exclude_columns", "columns", "filter", "mode", "cluster_by", "partition_by", "properties"}
_OF_TABLE |= MODE_OPTIONS.keys()


@dataclass(frozen=True)
class TableRule:
    """Overrides for one table; None takes the pipeline's policy.

    :param create: CREATE TABLE statement, for logs that begin after the table was created, or that carry no types.
    :param quarantine_limit: limit for the table's own records and rows.
    :param exclude_columns: shell patterns of columns that the tool leaves out of its rows, in any case.
    :param columns: which columns the stored table has, and what is in them.
    :param filter: condition over the source's columns: the stored table has the rows that it is TRUE of.
    :param mode: which rows the stored table has (:data:`TABLE_MODES`): ``mirror``, the default, those of the source's
        table; ``soft_delete`` also those that it had, flagged; ``append`` one for
        each change; ``history`` one for each version of a row.
    :param before: of mode ``append``: whether a change has the row before it, too, in columns ``before_<name>``.
    :param soft_delete_days: of mode ``soft_delete``: maintenance removes rows that were flagged so many days ago.
    :param track: of mode ``history``: names or shell patterns of columns; only another value of one of them makes a
        version, those of others are in the version that is there.
    :param cluster_by: ``key``, or columns in whose order rows are written.
    :param partition_by: columns and transforms of columns by which files are parted, where the sink can.
    :param properties: that the stored table states, by their names in its format.
    """

    create: str | None = None
    exclude_columns: str | list[str] | None = None
    columns: ColumnRules | None = None
    filter: str | None = None
    mode: str | None = None
    before: bool | None = None
    soft_delete_days: float | None = None
    track: list[str] | None = None
    cluster_by: str | list[str] | None = None
    partition_by: list[str] | None = None
    properties: dict[str, str] | None = None
    writer: str | None = None
    quarantine_limit: int | None = None
    on_add_column: str | None = None
    on_cascade: str | None = None
    on_contradiction: str | None = None
    on_convert_column: str | None = None
    on_create_table: str | None = None
    on_drop_column: str | None = None
    on_drop_table: str | None = None
    on_failover: str | None = None
    on_key_change: str | None = None
    on_missing_create: str | None = None
    on_rename_column: str | None = None
    on_rename_table: str | None = None
    on_rule_change: str | None = None
    on_truncate: str | None = None
    on_unseen_ddl: str | None = None
    on_widen_column: str | None = None
    tinyint1_as_boolean: bool | None = None
    verify: str | None = None
    zero_dates: str | None = None

    def check(self, checks: Checks) -> None:
        """Note the problems of this rule."""
        checks.text("create", self.create, optional=True)
        if self.exclude_columns is not None:
            checks.texts("exclude_columns", self.column_patterns, least=1)
        if checks.text("filter", self.filter, optional=True):
            check_expression(checks, "filter", str(self.filter))
        if self.mode is not None:
            checks.choice("mode", self.mode, TABLE_MODES)
        check_mode_options(checks, self.mode or MIRROR, self.mode_options)
        if self.columns is not None:
            mine = Checks(checks.key("columns"))
            self.columns.check(mine)
            checks.problems.extend(mine.problems)
            if self.filter is not None and not checks.problems:
                self.columns.check_reading(checks, "filter", self.filter)
            if self.track is not None and not checks.problems:
                self.columns.check_kept(checks, "track", self.track)
        if self.cluster_by is not None and self.cluster_by != "key":
            if isinstance(self.cluster_by, str):
                checks.problem("cluster_by", f"expected key or a list of columns, as [{self.cluster_by}]")
            else:
                checks.texts("cluster_by", self.cluster_by, least=1)
        if self.partition_by is not None and checks.texts("partition_by", self.partition_by, least=1):
            for problem in partition_problems(self.partition_by):
                checks.problem("partition_by", problem)
        if self.properties is not None:
            checks.options("properties", self.properties, home="a connection, never in a table")
        checks.integer("quarantine_limit", self.quarantine_limit, optional=True)
        if self.tinyint1_as_boolean is not None:
            checks.flag("tinyint1_as_boolean", self.tinyint1_as_boolean)
        if self.verify is not None:
            check_verify(checks, self.verify)
        for name, known in CHOICES.items():
            value = getattr(self, name, None)
            if value is not None:
                checks.choice(name, value, known)

    @property
    def mode_options(self) -> dict[str, Any]:
        """The options of its mode that are stated."""
        return {name: value for name in MODE_OPTIONS if (value := getattr(self, name)) is not None}

    @property
    def made_by_mode(self) -> str:
        """Return what its mode says of rows, with the options that count there; empty for a mirror."""
        return "" if self.mode in (None, MIRROR) else made_by(str(self.mode), self.mode_options)

    @property
    def column_patterns(self) -> list[str]:
        """The patterns of ``exclude_columns``; none where it is not set."""
        stated = self.exclude_columns
        return [stated] if isinstance(stated, str) else [] if stated is None else stated

    @property
    def unlogged_patterns(self) -> list[str]:
        """The patterns of columns whose values stay out of the change log."""
        return [] if self.columns is None else self.columns.unlogged_patterns

    @property
    def layout(self) -> TableLayout:
        """Return how the files of the table lie, and its properties."""
        properties = {name: as_text(value) for name, value in (self.properties or {}).items()}
        cluster = () if isinstance(self.cluster_by, str) else tuple(self.cluster_by or ())
        return TableLayout(properties, cluster, partition_rules(self.partition_by or ()))

    def document(self) -> dict[str, Any]:
        """Return plain JSON data: only what is set."""
        set_here = {name: value for name, value in asdict(self).items() if value is not None}
        return set_here if self.columns is None else {**set_here, "columns": self.columns.document()}


_OF_POLICY = tuple(f.name for f in fields(TableRule) if f.name not in _OF_TABLE)


@dataclass(frozen=True)
class TableRules:
    """Patterns for the tables that take part, and rules for single tables, or for all that match a pattern.

    In YAML, ``include`` and ``exclude`` are keys next to the tables; a table's key has a dot, so they cannot clash::

        tables:
          include: ["shop.*"]
          exclude: ["shop.tmp_*"]
          shop.orders: {create: "CREATE TABLE orders (id INT PRIMARY KEY)"}
          shop.log_*: {on_drop_table: apply}

    One rule counts for a table: that of its name, else that of the matching pattern with the longest literal prefix.

    :param include: shell patterns over ``database.table``; one must match.
    :param exclude: shell patterns; none may match.
    :param tables: rules by ``database.table``, or by shell patterns over it; a plain mapping is taken as a
        :class:`TableRule`.
    """

    include: str | list[str] = field(default_factory=lambda: ["*"])
    exclude: str | list[str] = field(default_factory=list)
    tables: dict[str, TableRule] = field(default_factory=dict)
    _patterns: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        checks = Checks("tables")
        for name in PATTERNS:
            value = getattr(self, name)
            value = [value] if isinstance(value, str) else value
            if checks.texts(name, value, least=1 if name == "include" else 0):
                object.__setattr__(self, name, list(value))
        if isinstance(self.tables, Mapping):
            rules = {key: self._rule(checks, key, item) for key, item in self.tables.items()}
            object.__setattr__(self, "tables", rules)
            patterns = [key for key in rules if isinstance(key, str) and is_pattern(key)]
            object.__setattr__(self, "_patterns", by_precedence(patterns))
            for one, other in ambiguous(patterns):
                checks.problem(one, f"a table that {other!r} matches too would have two rules; make one more specific")
        else:
            checks.problems.append(f"tables: expected a mapping, got {kind_of(self.tables)}")
        checks.raise_any()

    @staticmethod
    def _rule(checks: Checks, key: object, data: object) -> TableRule:
        database, dot, table = str(key).partition(".")
        if not isinstance(key, str) or not (database and dot and table):
            checks.problem(str(key), f"is neither database.table nor one of {', '.join(PATTERNS)}")
        mine = Checks(f"tables.{key}")
        rule = TableRule()
        if isinstance(data, TableRule):
            rule = data
        elif isinstance(data, Mapping):
            known = [f.name for f in fields(TableRule)]
            mine.unknown(data, known)
            stated = {name: value for name, value in data.items() if name in known}
            for name, (read, word) in _YAML_WORDS.items():
                if name in stated and stated[name] is read:
                    stated[name] = word
            columns_checks = Checks(mine.key("columns"))
            columns = ColumnRules.of(stated.pop("columns", None), columns_checks)
            mine.problems.extend(columns_checks.problems)
            rule = TableRule(columns=columns, **stated)
        else:
            checks.problem(str(key), f"expected a mapping, got {kind_of(data)}")
        rule.check(mine)
        if rule.create is not None and is_pattern(str(key)):
            mine.problem("create", "a statement is of one table, not of a pattern")
        checks.problems.extend(mine.problems)
        return rule

    def selects(self, table: object) -> bool:
        """Return whether a table (``database.table`` or a TableName) takes part."""
        name = str(table)
        return any(fnmatchcase(name, p) for p in self.include) and not any(fnmatchcase(name, p) for p in self.exclude)

    def rule(self, table: object) -> TableRule:
        """Return the rule of one table; an empty one if it has none."""
        return self._rule_of(str(table)) or TableRule()

    def _rule_of(self, name: str) -> TableRule | None:
        rule = self.tables.get(name)
        if rule is None and self._patterns:
            pattern = most_specific(self._patterns, name)
            return None if pattern is None else self.tables[pattern]
        return rule

    def names(self, table: object) -> bool:
        """Return whether a rule is stated for one table by its name, and not for a pattern."""
        return str(table) in self.tables

    def layout(self, table: object) -> TableLayout:
        """Return how the files of one table lie."""
        rule = self._rule_of(str(table))
        return TableLayout() if rule is None else rule.layout

    def policy(self, table: object, policy: RunPolicy) -> RunPolicy:
        """Return the pipeline's policy with the overrides of one table."""
        rule = self._rule_of(str(table))
        if rule is None:  # of most tables, and asked several times for each
            return policy
        overrides = {name: value for name in _OF_POLICY if (value := getattr(rule, name)) is not None}
        return replace(policy, **overrides) if overrides else policy

    @property
    def state_modes(self) -> bool:
        """Return whether a rule gives a table a mode."""
        return any(rule.mode for rule in self.tables.values())

    @property
    def leave_columns_out(self) -> bool:
        """Return whether a rule names columns that are in no row of the change log."""
        return self.keep_values_out or any(rule.exclude_columns for rule in self.tables.values())

    @property
    def keep_values_out(self) -> bool:
        """Return whether a rule keeps values of columns out of the change log."""
        return any(rule.unlogged_patterns for rule in self.tables.values())

    def document(self) -> dict[str, Any]:
        """Return plain JSON data, in the shape of the YAML section."""
        rules = {name: rule.document() for name, rule in sorted(self.tables.items())}
        return {"include": list(self.include), "exclude": list(self.exclude), **rules}

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> TableRules:
        """Build from the shape of the YAML section."""
        patterns = {name: data[name] for name in PATTERNS if name in data}
        return TableRules(**patterns, tables={name: item for name, item in data.items() if name not in PATTERNS})
