# SPDX-License-Identifier: Apache-2.0
"""Register the tables of a pipeline in a catalog after a batch. Nothing that a catalog does fails the batch."""

from __future__ import annotations

import hashlib
import importlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from airflow_provider_cdc.connections.lookup import ledger_url, sink_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.config.registrar_kinds import REGISTRARS
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.documents.table_locations import owners_of_locations
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import Lease
from airflow_provider_cdc.ledger.registered import Entry, RegisteredTables
from airflow_provider_cdc.registrars.contract import CatalogName, CatalogTable, Registrar, RegistrationError
from airflow_provider_cdc.sinks.contract import DescribedTable, UnreadableTableError
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables

BATCH_SECONDS = 60
"""Time after which a batch leaves further tables to the next one: a slow catalog must not hold it."""

SHOWN = 20
"""Warnings that a result has; a last one counts the others."""


def register_tables(
    pipeline: CdcPipeline,
    lease: Lease,
    states: Callable[[], Mapping[str, TableState]],
    check: Callable[[], None] = lambda: None,
) -> list[str]:
    """Let the catalog have the present tables; return what could not be done, one sentence each.

    Only tables whose name, location or columns changed since they were last registered are sent.

    :param states: returns those of all tables after the batch, by table id.
    :param check: raises where the request was stopped.
    """
    section = pipeline.sink.register
    if section is None:
        return []
    entries = RegisteredTables(ledger_url(pipeline.ledger))
    recorded = entries.entries(pipeline.name)
    due = _DueEntries.of(pipeline, section, states().values(), recorded)
    work = _Work(PipelineTables(pipeline, sink_options), due, recorded, check, list(due.warnings))
    try:
        work.do(section)
    finally:
        entries.record(lease, work.done)
    warnings, more = [printable(text) for text in work.warnings[:SHOWN]], len(work.warnings) - SHOWN
    return warnings if more <= 0 else [*warnings, f"{more} further warnings of the catalog"]


@dataclass
class _DueEntries:
    """Hold the entries that a catalog is to have.

    :ivar tables: states of present tables by their name in the catalog.
    :ivar entries: records of them once they are registered.
    :ivar of_dropped: names of tables that were dropped and keep their content: their entries are left alone.
    """

    tables: dict[CatalogName, TableState] = field(default_factory=dict)
    entries: dict[CatalogName, Entry] = field(default_factory=dict)
    of_dropped: set[CatalogName] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        pipeline: CdcPipeline,
        section: Register,
        states: Iterable[TableState],
        recorded: Mapping[tuple[str, str], Entry],
    ) -> _DueEntries:
        """Choose the entries; of tables that would share a name the one that has it keeps it, else the first by id."""
        due, present = cls(), [state for state in states if state.version is not None]
        owners, target = owners_of_locations(present), pipeline.target_names
        named = []
        for state in present:
            database, table = target.name_of(TableName(state.database, state.table))
            name = CatalogName(section.database_of(database).lower(), table.lower())
            location = located(pipeline.sink.root, state.location)
            there = recorded.get(name)
            if state.state == TableStatus.DROPPED:
                due.of_dropped.add(name)
            elif owners.get(state.location) == state.table_id:
                named.append((there is None or there.location != location, state.table_id, name, location, state))
        for _, _, name, location, state in sorted(named, key=lambda one: one[:2]):
            other = due.tables.setdefault(name, state)
            if other is state:
                due.entries[name] = Entry(location, _mark(section, location, state))
            else:
                due.warnings.append(
                    f"{state.database}.{state.table} is not registered: "
                    f"{other.database}.{other.table} has its name in the catalog, {name}"
                )
        return due


def _mark(section: Register, location: str, state: TableState) -> str:
    made_from = [section.document(), location, state.schema, state.made_with, state.laid]
    made_from += [state.comments] if state.comments else []
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()


@dataclass
class _Work:
    """Hold the work of one batch in a catalog.

    :param recorded: entries as the ledger has them.
    :ivar done: entries as they are since; None for none.
    """

    stored: PipelineTables
    due: _DueEntries
    recorded: Mapping[tuple[str, str], Entry]
    check: Callable[[], None]
    warnings: list[str]
    done: dict[tuple[str, str], Entry | None] = field(default_factory=dict)

    def do(self, section: Register) -> None:
        """Remove entries of tables that are gone, then register those that changed."""
        gone = [CatalogName(*name) for name, entry in self.recorded.items() if self._is_gone(entry, name)]
        changed = [name for name, entry in self.due.entries.items() if self.recorded.get(name) != entry]
        steps = [(self._remove, name) for name in gone] + [(self._register, name) for name in changed]
        if not steps:
            return
        try:
            registrar = _opened(section)
        except (CdcError, RegistrationError) as error:
            self.warnings.append(f"the catalog cannot be asked: {getattr(error, 'message', error)}")
            return
        until = time.monotonic() + BATCH_SECONDS
        for number, (step, name) in enumerate(steps):
            self.check()
            left = f"{len(steps) - number} tables are left to the next batch"
            if time.monotonic() > until:
                self.warnings.append(f"the catalog is slow: {left}")
                return
            try:
                step(registrar, name)
            except RegistrationError as error:
                self.warnings.append(f"{name}: {error}" + (f"; {left}" if error.passing else ""))
                if error.passing:
                    return

    def _is_gone(self, entry: Entry, name: tuple[str, str]) -> bool:
        now = self.due.entries.get(CatalogName(*name))
        return name not in self.due.of_dropped if now is None else now.location != entry.location

    def _register(self, registrar: Registrar, name: CatalogName) -> None:
        entry = self.due.entries[name]
        try:
            stored = self.stored.newest(self.due.tables[name])
        except UnreadableTableError as error:
            raise RegistrationError(f"the table cannot be read ({error})", passing=False) from None
        assert isinstance(stored, DescribedTable), "only kinds that describe their tables have sink.register"
        with _understood():
            registrar.register(CatalogTable(name, entry.location, tuple(stored.columns()), stored.comment()))
        self.done[name] = entry

    def _remove(self, registrar: Registrar, name: CatalogName) -> None:
        location = self.recorded[name].location
        with _understood():
            ours = registrar.remove(name, location)
        self.done[name] = None
        if not ours:
            self.warnings.append(f"{name}: the entry stays in the catalog, as its location is no longer {location}")


def _opened(section: Register) -> Registrar:
    with _understood():
        registrar: Registrar = importlib.import_module(REGISTRARS[section.type].module).open_registrar(section)
        return registrar


@contextmanager
def _understood() -> Iterator[None]:
    """Turn whatever goes wrong with a catalog into an error of it: an odd answer must not fail a batch."""
    try:
        yield
    except (RegistrationError, CdcError):
        raise
    except Exception as error:
        text = f"the catalog's answer is not understood ({type(error).__name__})"
        raise RegistrationError(text, passing=False) from None
