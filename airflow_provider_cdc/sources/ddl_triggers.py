# SPDX-License-Identifier: Apache-2.0
"""Write the SQL of the event triggers that put each DDL of a PostgreSQL database into a table."""

from __future__ import annotations

import re
from typing import NamedTuple

from airflow_provider_cdc.core.errors import ConfigurationError

DEFAULT_LOG, DEFAULT_BEAT = "ctl.ddl_log", "ctl.beat"

_PART = r'(?:[A-Za-z_][A-Za-z0-9_]*|"[^"]+")'  # Debezium reads no table whose name has a quote in it
_QUALIFIED = re.compile(rf"({_PART})\.({_PART})")
_PREFIX = "airflow_cdc_"


class QualifiedName(NamedTuple):
    """Hold a schema and a table, as the catalogue has them."""

    schema: str
    table: str

    @property
    def sql(self) -> str:
        """The name as SQL writes it."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"


def qualified(text: str) -> QualifiedName:
    """Read ``schema.table``; parts in quotes keep their case, others are folded as PostgreSQL folds them.

    :raises ConfigurationError: it is not such a name.
    """
    match = _QUALIFIED.fullmatch(text)
    if match is None:
        raise ConfigurationError([f"--table {text!r}: is not SCHEMA.TABLE"])
    schema, table = (part[1:-1] if part.startswith('"') else part.lower() for part in match.groups())
    return QualifiedName(schema, table)


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def install_sql(log: QualifiedName) -> tuple[str, str]:
    """Return SQL that makes table, functions and triggers, and SQL that writes each table there is into the log.

    Both are to be sent apart: the second one ends several transactions. They may run again: what is there is replaced,
    and the tables are described again.
    """
    return _filled(_INSTALL, log), _filled(_DESCRIBE, log)


def uninstall_sql(log: QualifiedName) -> str:
    """Return SQL that removes triggers, functions and the log; its schema stays."""
    return _filled(_UNINSTALL, log)


def heartbeat_sql(beat: QualifiedName) -> tuple[str, str]:
    """Return the statement that makes a table for the beat, and Debezium's ``heartbeat.action.query``."""
    return _filled(_BEAT_TABLE, beat), " ".join(_filled(_BEAT, beat).split())


def _filled(text: str, table: QualifiedName) -> str:
    names = {
        "@schema@": quoted(table.schema),
        "@table@": table.sql,
        "@literal@": "'" + table.sql.replace("'", "''") + "'",
        "@prefix@": _PREFIX,
        "@columns@": f"{quoted(table.schema)}.{_PREFIX}columns",
        "@note@": f"{quoted(table.schema)}.{_PREFIX}note",
        "@below@": f"{quoted(table.schema)}.{_PREFIX}below",
        "@on_ddl@": f"{quoted(table.schema)}.{_PREFIX}on_ddl",
        "@on_drop@": f"{quoted(table.schema)}.{_PREFIX}on_drop",
        "@on_rewrite@": f"{quoted(table.schema)}.{_PREFIX}on_rewrite",
    }
    for name, value in names.items():
        text = text.replace(name, value)
    return text.strip() + "\n"


# Functions run as who installed them, so that anybody's DDL is logged, and with settings that fix how values are
# written. One that fails leaves a row that says so, and never the DDL.
# ends a trigger: a failure is noted, and never fails the DDL
_GUARDED = """EXCEPTION WHEN OTHERS THEN
  BEGIN
    PERFORM @note@(tg_event, tg_tag, NULL, NULL, NULL, NULL, current_query(), SQLSTATE || ' ' || SQLERRM);
  EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'airflow-cdc: this DDL is not in the log: % %', SQLSTATE, SQLERRM;
  END;
END
$body$;
"""
_SETTINGS = """
  SET search_path = pg_catalog, pg_temp
  SET TimeZone = 'UTC' SET DateStyle = 'ISO, MDY' SET IntervalStyle = 'iso_8601'
  SET bytea_output = 'hex' SET extra_float_digits = 1 SET lc_monetary = 'C' SET quote_all_identifiers = off"""

_INSTALL = (
    """
BEGIN;
-- one installation at a time, and no DDL between the triggers' begin and the description of what is there
SELECT pg_advisory_xact_lock(hashtext('airflow_cdc_ddl_triggers'));
DROP EVENT TRIGGER IF EXISTS @prefix@ddl;
DROP EVENT TRIGGER IF EXISTS @prefix@drop;
DROP EVENT TRIGGER IF EXISTS @prefix@rewrite;
CREATE SCHEMA IF NOT EXISTS @schema@;
CREATE TABLE IF NOT EXISTS @table@ (
  id bigserial PRIMARY KEY,
  event text NOT NULL,
  tag text,
  kind text,
  object text,
  relid bigint,
  columns jsonb,
  key jsonb,
  rewrite int,
  query text,
  schema_name text,
  table_name text,
  relkind text,
  partition boolean,
  children jsonb,
  via_root boolean,
  persistence text,
  replica_identity text,
  system_identifier text,
  error text
);

-- the columns of a table: of a domain also the type it is made of, of a generated column no default
CREATE OR REPLACE FUNCTION @columns@(relation oid) RETURNS jsonb LANGUAGE sql STABLE AS $body$
  SELECT jsonb_agg(jsonb_build_object(
    'attnum', a.attnum, 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'notnull', a.attnotnull,
    'default', pg_get_expr(d.adbin, d.adrelid), 'missing', a.attmissingval::text, 'generated', a.attgenerated::text,
    'identity', a.attidentity::text, 'kind', t.typtype::text, 'base', b.base) ORDER BY a.attnum)
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN LATERAL (
    WITH RECURSIVE up(typid, typmod, depth) AS (
      SELECT t.typbasetype, t.typtypmod, 1 WHERE t.typtype = 'd'
      UNION ALL
      SELECT u.typbasetype, CASE WHEN u.typtypmod = -1 THEN up.typmod ELSE u.typtypmod END, up.depth + 1
      FROM up JOIN pg_type u ON u.oid = up.typid WHERE u.typtype = 'd'
    )
    SELECT format_type(typid, typmod) AS base FROM up ORDER BY depth DESC LIMIT 1
  ) b ON true
  WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
$body$;

-- a table with all partitions and children below it: ALTER TABLE changes them, and names only the first
CREATE OR REPLACE FUNCTION @below@(relation oid) RETURNS SETOF oid LANGUAGE sql STABLE AS $body$
  WITH RECURSIVE down(oid) AS (
    SELECT relation UNION SELECT i.inhrelid FROM pg_inherits i JOIN down ON i.inhparent = down.oid
  )
  SELECT oid FROM down
$body$;

-- write one row; with a table's oid its structure as it is now
CREATE OR REPLACE FUNCTION @note@(
  event text, tag text, kind text, object text, relation oid, reason int, query text, failed text,
  schema_name text DEFAULT NULL, table_name text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql"""
    + _SETTINGS
    + """ AS $body$
DECLARE
  c pg_class;
  identifier text;
  described jsonb;
BEGIN
  IF failed IS NULL AND event <> 'sql_drop' THEN
    SELECT * INTO c FROM pg_class WHERE oid = relation;
    IF NOT FOUND OR c.relkind NOT IN ('r', 'p') OR c.relpersistence = 't' OR c.oid = to_regclass(@literal@) THEN
      RETURN;
    END IF;
    IF event <> 'table_rewrite' THEN
      described := coalesce(@columns@(c.oid), '[]');
    END IF;
  END IF;
  BEGIN
    SELECT s.system_identifier INTO identifier FROM pg_control_system() s;
  EXCEPTION WHEN insufficient_privilege THEN NULL;
  END;
  INSERT INTO @table@ (event, tag, kind, object, relid, columns, key, rewrite, query, schema_name, table_name,
    relkind, partition, children, via_root, persistence, replica_identity, system_identifier, error)
  SELECT event, tag, kind, coalesce(object, c.oid::regclass::text), relation::bigint,
    described,
    CASE WHEN described IS NOT NULL THEN (
      SELECT jsonb_agg(k.attnum ORDER BY k.number) FROM pg_index i,
        unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, number)
      WHERE i.indrelid = c.oid AND i.indisprimary AND k.number <= i.indnkeyatts) END,
    reason, query, coalesce(schema_name, n.nspname), coalesce(table_name, c.relname), c.relkind::text,
    c.relispartition, (SELECT jsonb_agg(i.inhrelid::bigint ORDER BY i.inhrelid) FROM pg_inherits i
      WHERE i.inhparent = c.oid AND c.relkind = 'p'), (SELECT bool_or(p.pubviaroot) FROM pg_publication p),
    c.relpersistence::text,
    CASE WHEN c.relreplident = 'i' AND EXISTS (SELECT FROM pg_index i
      WHERE i.indrelid = c.oid AND i.indisreplident AND i.indisprimary) THEN 'd' ELSE c.relreplident::text END,
    identifier, failed
  FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.oid = c.relnamespace;
END
$body$;

CREATE OR REPLACE FUNCTION @on_ddl@() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER"""
    + _SETTINGS
    + """ AS $body$
DECLARE
  r record;
  t oid;
BEGIN
  FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
    BEGIN
      IF r.object_type IN ('table', 'table column') THEN
        FOR t IN SELECT b FROM @below@(r.objid) b LOOP
          PERFORM @note@(tg_event, r.command_tag, r.object_type, NULL, t, NULL, current_query(), NULL);
        END LOOP;
      ELSIF r.object_type = 'schema' AND r.command_tag = 'ALTER SCHEMA' THEN
        FOR t IN SELECT oid FROM pg_class WHERE relnamespace = r.objid AND relkind IN ('r', 'p') LOOP
          PERFORM @note@(tg_event, r.command_tag, 'table', NULL, t, NULL, current_query(), NULL);
        END LOOP;
      ELSIF r.object_type IN ('type', 'domain') AND r.command_tag IN ('ALTER TYPE', 'ALTER DOMAIN') THEN
        -- a label that is renamed is another value in all rows
        FOR t IN SELECT DISTINCT a.attrelid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            WHERE a.atttypid = r.objid AND NOT a.attisdropped AND c.relkind IN ('r', 'p') LOOP
          PERFORM @note@(tg_event, r.command_tag, r.object_type, r.object_identity, t, NULL, current_query(), NULL);
        END LOOP;
      END IF;
    EXCEPTION WHEN OTHERS THEN
      PERFORM @note@(tg_event, r.command_tag, r.object_type, r.object_identity, r.objid, NULL, current_query(),
        SQLSTATE || ' ' || SQLERRM);
    END;
  END LOOP;
"""
    + _GUARDED
    + """
CREATE OR REPLACE FUNCTION @on_drop@() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER"""
    + _SETTINGS
    + """ AS $body$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM pg_event_trigger_dropped_objects() WHERE NOT is_temporary LOOP
    BEGIN
      IF r.object_type = 'table' THEN
        PERFORM @note@(tg_event, tg_tag, r.object_type, r.object_identity, r.objid, NULL, current_query(), NULL,
          r.schema_name, r.object_name);
      ELSIF r.object_type = 'table column' AND tg_tag <> 'ALTER TABLE' THEN
        -- a type or a function took the column with it: no other row describes the table
        PERFORM @note@('ddl_command_end', tg_tag, r.object_type, NULL, r.objid, NULL, current_query(), NULL);
      END IF;
    EXCEPTION WHEN OTHERS THEN
      PERFORM @note@(tg_event, tg_tag, r.object_type, r.object_identity, r.objid, NULL, current_query(),
        SQLSTATE || ' ' || SQLERRM);
    END;
  END LOOP;
"""
    + _GUARDED
    + """
CREATE OR REPLACE FUNCTION @on_rewrite@() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER"""
    + _SETTINGS
    + """ AS $body$
BEGIN
  PERFORM @note@(tg_event, tg_tag, 'table', NULL, pg_event_trigger_table_rewrite_oid(),
    pg_event_trigger_table_rewrite_reason(), current_query(), NULL);
EXCEPTION WHEN OTHERS THEN
  BEGIN
    PERFORM @note@(tg_event, tg_tag, 'table', NULL, pg_event_trigger_table_rewrite_oid(), NULL, current_query(),
      SQLSTATE || ' ' || SQLERRM);
  EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'airflow-cdc: this DDL is not in the log: % %', SQLSTATE, SQLERRM;
  END;
END
$body$;

REVOKE ALL ON @table@ FROM PUBLIC;
REVOKE ALL ON FUNCTION @note@(text, text, text, text, oid, int, text, text, text, text) FROM PUBLIC;

CREATE EVENT TRIGGER @prefix@ddl ON ddl_command_end EXECUTE FUNCTION @on_ddl@();
CREATE EVENT TRIGGER @prefix@drop ON sql_drop EXECUTE FUNCTION @on_drop@();
CREATE EVENT TRIGGER @prefix@rewrite ON table_rewrite EXECUTE FUNCTION @on_rewrite@();
-- also for DDL of sessions that replicate
ALTER EVENT TRIGGER @prefix@ddl ENABLE ALWAYS;
ALTER EVENT TRIGGER @prefix@drop ENABLE ALWAYS;
ALTER EVENT TRIGGER @prefix@rewrite ENABLE ALWAYS;

SELECT set_config('airflow_cdc.installed_by', txid_current()::text, false);
COMMIT;
"""
)

_DESCRIBE = """
-- DDL that began before has no triggers: wait for it, then describe each table that is there, in a transaction each
DO $body$
DECLARE
  t oid;
  first bigint := current_setting('airflow_cdc.installed_by')::bigint;
BEGIN
  FOR i IN 1..600 LOOP
    EXIT WHEN txid_snapshot_xmin(txid_current_snapshot()) > first;
    IF i = 600 THEN
      RAISE EXCEPTION 'a transaction that began before the triggers is still open, and its DDL may not be logged'
        USING HINT = 'end it, then run this again: pg_stat_activity shows it';
    END IF;
    PERFORM pg_sleep(0.1);
    COMMIT;
  END LOOP;
  FOR t IN SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
        AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' ORDER BY c.oid LOOP
    BEGIN
      EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', t::regclass);
      PERFORM @note@('install', 'INSTALL', 'table', NULL, t, NULL, NULL, NULL);
    EXCEPTION WHEN undefined_table OR syntax_error THEN NULL; -- somebody dropped it
    END;
    COMMIT;
  END LOOP;
END
$body$;
"""

_UNINSTALL = """
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('airflow_cdc_ddl_triggers'));
DROP EVENT TRIGGER IF EXISTS @prefix@ddl;
DROP EVENT TRIGGER IF EXISTS @prefix@drop;
DROP EVENT TRIGGER IF EXISTS @prefix@rewrite;
DROP FUNCTION IF EXISTS @on_ddl@();
DROP FUNCTION IF EXISTS @on_drop@();
DROP FUNCTION IF EXISTS @on_rewrite@();
DROP FUNCTION IF EXISTS @note@(text, text, text, text, oid, int, text, text, text, text);
DROP FUNCTION IF EXISTS @below@(oid);
DROP FUNCTION IF EXISTS @columns@(oid);
DROP TABLE IF EXISTS @table@;
COMMIT;
"""

_BEAT_TABLE = """
CREATE SCHEMA IF NOT EXISTS @schema@;
CREATE TABLE IF NOT EXISTS @table@ (
  id int PRIMARY KEY, system_identifier text NOT NULL, timeline text NOT NULL, at timestamptz NOT NULL
);
"""

_BEAT = """
INSERT INTO @table@ (id, system_identifier, timeline, at)
SELECT 1, s.system_identifier::text, left(pg_walfile_name(pg_current_wal_lsn()), 8), now() FROM pg_control_system() s
ON CONFLICT (id) DO UPDATE SET system_identifier = excluded.system_identifier, timeline = excluded.timeline,
  at = excluded.at
"""
