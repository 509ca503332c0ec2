# SPDX-License-Identifier: Apache-2.0
"""Define parsed statements about databases."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE or SCHEMA."""

    database: str
    charset: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """ALTER DATABASE or SCHEMA with a character set, of the tables that are created in it from now on.

    ``database`` is empty for that of the session.
    """

    database: str
    charset: str


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE or SCHEMA: drops every table in it."""

    database: str


@dataclass(frozen=True, slots=True)
class RenameDatabase:
    """ALTER DATABASE `#mysql50#name` UPGRADE DATA DIRECTORY NAME: the database loses the prefix."""

    database: str
    new_name: str


@dataclass(frozen=True, slots=True)
class UseDatabase:
    """USE database."""

    database: str
