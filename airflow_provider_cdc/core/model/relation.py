# SPDX-License-Identifier: Apache-2.0
"""Define a schema change that identifies table and columns by numbers of the source's catalogue, not by names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.plain_data import Document


class RelationEvent(StrEnum):
    """Say what a change shows of a table."""

    DESCRIBED = "described"  # its structure from here on
    DROPPED = "dropped"
    REWRITTEN = "rewritten"  # stored rows got other values; what it has become is described after that
    RELABELLED = "relabelled"  # a label of a type is another text now, in stored rows too
    FAILED = "failed"  # something that could not be described
    SERVER = "server"  # of no table: which server wrote a row
    LACKING = "lacking"  # the log counts changes of the table that it does not have


class RelationKind(StrEnum):
    """Say under which names the rows of a table come."""

    TABLE = "table"
    ROOT = "root"  # of partitions: its rows may come under their names
    PARTITION = "partition"  # its rows may come under the root's name


@dataclass(frozen=True, slots=True)
class RelationChange(Document):
    """Hold what one entry of a source's own log of schema changes says of a table.

    Column ids of the structure are the catalogue's numbers, which a rename keeps and no other column gets.

    :param number: of the entry in that log, by which a repeat is recognised.
    :param system: which server made it, empty where the entry does not say.
    :param oid: number of the table in the catalogue, None where the entry does not say.
    :param created: whether the statement made the table, so that all of its rows are in the log.
    :param rows_before: whether rows that the statement wrote stand before it, at places with the same first number.
    :param rewrite: reasons of a rewrite, as bits: 1 persistence, 2 added columns, 4 types, 8 access method.
    :param plain: whether the statement converts types as the server does by itself, without an expression.
    :param filled: columns that stored rows did not get as NULL, or as the constant that the structure states.
    :param printed: columns of text into which the server converts a number as it prints it, neither cut nor padded.
    :param left_out: columns of the source that rows of the stream lack, in the structure's names.
    :param generated: numbers of those columns among ``left_out`` whose values the server computes.
    :param types: names of the types that people made, which the columns have, or that changed.
    :param children: oids of a root's partitions; None where the entry does not say.
    :param via_root: whether rows of partitions come under the root's name; None where the entry does not say.
    :param moves: whether a statement attached or detached a partition.
    :param by_index: whether changed rows are named by an index that is not the key's: a key that moves alone leaves no
        trace of the old one, and a deleted row comes without its key.
    :param text: of a failure: what went wrong; of a server the timeline of its log.
    :param read: whether a snapshot read the row: the server that wrote it need not be the one that it was read from.
    """

    event: RelationEvent
    number: int
    system: str
    oid: int | None
    database: str
    table: str
    kind: RelationKind = RelationKind.TABLE
    structure: TableSchema | None = None
    created: bool = False
    rows_before: bool = False
    rewrite: int = 0
    plain: bool = False
    filled: tuple[int, ...] = ()
    printed: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()
    generated: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    children: tuple[int, ...] | None = None
    via_root: bool | None = None
    moves: bool = False
    by_index: bool = False
    text: str = ""
    read: bool = False
