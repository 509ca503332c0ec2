# SPDX-License-Identifier: Apache-2.0
"""Take over a table's structure as a tool states it, or as another description of the table has it."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.table_keys import TableKeys
from airflow_provider_cdc.core.timeline.tool_accounts import as_stated


class TableAccounts(TableKeys):
    """Hold the structure of a table, and compare it with a tool's own account."""

    def adopt(self, known: TableSchema, position: str | None = None) -> None:
        """Adopt names, order, types and key from the tool's own account; keep ids and the DDL text's defaults.

        Columns that the source dropped and the target keeps stay where they are.
        """
        position = position or self._position
        retained = [(index, column) for index, column in enumerate(self.columns) if column.dropped]
        self.columns = [column for column in self.columns if not column.dropped]
        by_name = {column.name: column for column in self.columns}
        folded = {column.name.lower(): column for column in self.columns}
        columns = []
        for column in known.columns:
            old = by_name.get(column.name) or folded.get(column.name.lower())
            if old is None:
                columns.append(replace(column, id=self._id(column.name, position)))
            else:
                # the tool's account of defaults lacks introducers, expressions and quoting: keep that of the DDL text
                columns.append(
                    replace(
                        column,
                        id=old.id,
                        default=old.default,
                        generated=old.generated or column.generated,
                        auto_increment=old.auto_increment or column.auto_increment,
                    )
                )
        ids = {column.name: new.id for column, new in zip(known.columns, columns, strict=True)}
        self.columns = columns
        for index, column in retained:
            if column.name.lower() not in {new.name.lower() for new in columns}:
                self.columns.insert(index, column)
        self.key, self._key_is_stated = [ids[column.name] for column in known.key_columns], False
        self.unique = {}  # the tool's key is the one that its messages use

    def with_own_key(self, account: TableSchema) -> TableSchema:
        """Return a tool's account with the key of this table instead of its own, where it has the key's columns."""
        own, ids = self.schema().key_columns, {column.name: column.id for column in account.columns}
        if not self.columns or any(column.name not in ids for column in own):
            return account
        return TableSchema(account.columns, tuple(ids[column.name] for column in own))

    def confirm(self, account: TableSchema, position: str | None = None) -> None:
        """Adopt from a tool's account what the texts of statements leave open; where they contradict it, they count."""
        if not self.columns:
            self.adopt(account, position)
            return
        primary, unique = list(self.key), dict(self.unique)
        is_stated = self._key_is_stated and bool(primary)
        self.adopt(as_stated(self.schema(), account, undecided_timestamps=self._undecided_timestamps), position)
        if is_stated:
            self.key, self.unique, self._key_is_stated = primary, unique, True

    def become(self, other: TableAccounts, position: str) -> None:
        """Adopt another description of the table; a column of the same name keeps its id."""
        self.charset = other.charset
        names = {column.id: column.name for column in other.columns}
        self.adopt(other.schema(), position)
        ids = {column.name: column.id for column in self.columns}
        self.key, self._key_is_stated = [ids[names[i]] for i in other.key], other._key_is_stated
        self.unique = {index: [ids[names[i]] for i in key] for index, key in other.unique.items()}
        expressions = {ids[names[i]]: expression.text for i, expression in other.expressions.items()}
        # the text of a known expression may be written in another way
        self._stated = {i: text for i, text in expressions.items() if text and i not in self.expressions}
        self._read_expressions()
