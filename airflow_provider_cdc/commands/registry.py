# SPDX-License-Identifier: Apache-2.0
"""List all verbs with their arguments."""

from __future__ import annotations

from airflow_provider_cdc.commands.verbs import (
    Argument,
    OrEmpty,
    Verb,
    instant,
    option,
    positive,
    record,
    seconds,
    switch,
)

_PIPELINE = Argument("pipeline", metavar="PIPELINE.yaml", help="the pipeline's YAML file")
_MAYBE_PIPELINE = Argument("pipeline", nargs="?", **_PIPELINE.settings)
_JSON = switch("--json", help="print JSON for machines")
_UNTIL = Argument(
    "--until",
    type=instant,
    metavar="ISO",
    help="read what the source committed before this time (UTC without a zone); default: all that is there now",
)
_ACCEPT_LOSS = switch(
    "--accept-loss", help="continue although Kafka deleted records that no batch has read; the result reports them"
)
_NEW_GENERATION = Argument(
    "--new-generation",
    nargs="?",
    action=OrEmpty,
    metavar="TOPIC/PARTITION:OFFSET",
    help="approve that a new log of the source begins with this record; default: the record that is waiting",
)
_SCHEMAS = Argument(
    "--schemas",
    metavar="FILE",
    help="schemas of a registry: a JSON list of objects with id, schema and maybe schemaType",
)
_DECODE = (
    Argument("--format", required=True, metavar="NAME", help="wire format; `formats` lists them"),
    Argument("--option", action="append", default=[], type=option, metavar="K=V", help="option of the format"),
    _SCHEMAS,
    Argument("files", nargs="+", metavar="FILE", help=".jsonl or .jsonl.xz, one record a line; - is stdin"),
)

_DETECT = (
    _SCHEMAS,
    Argument("file", metavar="FILE", help=".jsonl or .jsonl.xz, one record a line; - is stdin"),
    _JSON,
)

_DDL = (
    Argument(
        "--dialect", required=True, choices=("mysql", "mariadb", "oracle"), help="the server that ran the statements"
    ),
    Argument("--database", metavar="D", help="database of names that are not qualified"),
    switch("--replay", help="print the tables after all statements, last"),
    Argument("file", metavar="FILE", help="one JSON object with the statement in sql a line; - is stdin"),
)
_SINCE = Argument(
    "--since", type=instant, metavar="ISO", help="show the history from this time on; default: the last 20 samples"
)
_LAG = (_PIPELINE, _SINCE, _JSON)

_TABLES = Argument(
    "--tables", action="append", default=[], metavar="D.T", help="a table, may be repeated; default: all tables"
)
_REPLAY = (
    _PIPELINE,
    _TABLES,
    Argument("--from", dest="since", type=instant, metavar="ISO", help="source time of the first rows; default: all"),
    Argument("--until", type=instant, metavar="ISO", help="source time behind the last rows"),
    _JSON,
)

_SYNC = (_PIPELINE, _UNTIL, _ACCEPT_LOSS, _JSON)

_SERVE = (
    Argument("pipelines", nargs="+", metavar="PIPELINE.yaml|FOLDER", help="pipelines' YAML files, or folders of them"),
    Argument(
        "--every", type=seconds, default=60.0, metavar="SECONDS", help="between two batches of a pipeline (default: 60)"
    ),
    Argument("--jobs", type=positive, default=1, metavar="N", help="batches at a time (default: 1)"),
    _JSON,
)

_EXPLAIN = switch("--explain", help="also land and resolve it, and show what it would do; nothing is committed")
_PLAN = (_PIPELINE, _UNTIL, _EXPLAIN, _JSON)
_PURGE = Argument(
    "--purge",
    metavar="DATABASE.TABLE",
    help="do nothing but remove every file of this table that its newest version does not have, at once",
)
_REBUILD = (
    _PIPELINE,
    Argument("tables", nargs="+", metavar="DATABASE.TABLE", help="a table to rebuild, may be several"),
    Argument(
        "--from",
        dest="source",
        metavar="change_log|snapshot|PATH",
        default="change_log",
        help="change_log: all rows since the table was created or its last full snapshot (default); "
        "snapshot: those since an ad hoc snapshot of the whole table, which Debezium calls incremental or "
        "blocking; PATH: a Delta table, parquet file or folder of them with all rows of one table",
    ),
    Argument(
        "--since",
        type=instant,
        metavar="ISO",
        help="of a snapshot: a time shortly before it was asked for; default: after the rows became unknown; "
        "of files: a time up to which they hold every change of the source",
    ),
    switch("--signal", help="rebuild nothing: ask Debezium for an incremental snapshot, through source.signal_topic"),
    _JSON,
)
_VERIFY = (
    _PIPELINE,
    Argument("tables", nargs="*", metavar="DATABASE.TABLE", help="a table; default: all that are ok"),
    _JSON,
)
_HISTORY = switch("--history", help="show schema versions with their statements, and all states with their reasons")
_APPROVE = (
    _PIPELINE,
    Argument(
        "table",
        nargs="?",
        metavar="DATABASE.TABLE",
        help="carry out the oldest schema change that this table waits for; default: show what waits",
    ),
    Argument(
        "--change",
        metavar="ID",
        help="the change of the table, also one that was denied; default: the oldest that waits",
    ),
    switch("--deny", help="leave the change of the table out"),
    Argument("--by", metavar="NAME", help="who decides; default: user and host"),
    _NEW_GENERATION,
    _JSON,
)
_DOCTOR = (
    _MAYBE_PIPELINE,
    switch("--probe", help="also make a small table in the sink, merge into it and remove it"),
    _JSON,
)
_QUARANTINE = (
    _PIPELINE,
    Argument(
        "action",
        choices=("list", "show", "export", "replay", "discard"),
        help="list what waits; show it with its contents; export it to a file in the form that "
        "`decode` reads; replay it, from a file or as it is; discard it for good",
    ),
    Argument("file", nargs="?", metavar="FILE", help="of export and replay; - is stdout or stdin"),
    Argument(
        "--record",
        action="append",
        default=[],
        type=record,
        metavar="TOPIC/PARTITION:OFFSET",
        help="a record, may be repeated; default: all",
    ),
    _TABLES,
    switch("--all", help="list: also what was replayed or discarded; discard: everything that waits"),
    Argument("--why", metavar="TEXT", help="reason, recorded with the decision; discard needs it"),
    Argument("--by", metavar="NAME", help="who decides; default: user and host"),
    _JSON,
)

_DEMO = (
    Argument(
        "--folder",
        metavar="FOLDER",
        help="where log, tables, ledger and the pipeline's file are written, new or empty; default: a new "
        "folder among the temporary ones",
    ),
    Argument("--sink", default="delta", help="kind of the tables, as sink.type (default: delta)"),
    switch("--spark", help="on a Spark of this machine; needs the extra spark"),
    switch(
        "--airflow",
        help="in an Airflow of its own with the page; address and login are printed, Ctrl-C ends and removes it",
    ),
    _JSON,
)

_POSTGRES = (
    Argument("action", choices=("ddl-triggers",), help="event triggers that write each DDL into a table"),
    switch("--print", dest="print_sql", help="print the SQL, for psql"),
    Argument(
        "--install", metavar="CONNECTION", help="run it over this Airflow connection of type postgres, as a superuser"
    ),
    Argument("--uninstall", metavar="CONNECTION", help="remove triggers, functions and the table again"),
    switch("--heartbeat-query", help="print Debezium's heartbeat.action.query, which shows a failover in the log"),
    Argument("--table", metavar="SCHEMA.NAME", help="default: ctl.ddl_log, with --heartbeat-query ctl.beat"),
)

VERBS = (
    Verb(
        "demo",
        "demo:demo",
        "show it at work, without Kafka and Spark: a web shop's recorded day into tables, each compared with the "
        "database; exits with 1 where one differs",
        _DEMO,
    ),
    Verb("sync", "sync:sync", "run one batch: plan, land, apply, publish", _SYNC),
    Verb(
        "serve",
        "serve:serve",
        "run batches of pipelines again and again, from one process that has imported everything, until it is stopped",
        _SERVE,
    ),
    Verb(
        "approve",
        "approve:approve",
        "show what waits for an approval; decide about a schema change of a table; with --new-generation accept the "
        "source's new log and finish the batch",
        _APPROVE,
    ),
    Verb(
        "replay",
        "sync:replay",
        "apply rows of the change log again; where a table has a newer change of the same key, that one wins",
        _REPLAY,
    ),
    Verb(
        "rebuild",
        "sync:rebuild",
        "make tables again from the change log, a snapshot or files, in one commit each",
        _REBUILD,
    ),
    Verb(
        "verify",
        "verify:verify",
        "compare tables with the change log, without the source; exits with 3 where one differs",
        _VERIFY,
    ),
    Verb(
        "quarantine",
        "quarantine:quarantine",
        "list, show, export, replay or discard records and rows that could not be carried",
        _QUARANTINE,
    ),
    Verb(
        "maintain",
        "maintain:maintain",
        "put small files of the tables together, write checkpoints, remove what is older than policy.log_retention",
        (_PIPELINE, _PURGE, _JSON),
    ),
    Verb(
        "adopt",
        "adopt:adopt",
        "go on with a lake that was copied or moved: the one at the root is the pipeline's from now on",
        (_PIPELINE, _JSON),
    ),
    Verb(
        "secrets",
        "secrets:secrets",
        "write the secrets of the pipeline's jobs to a new file, for the store of a platform that runs staged jobs",
        (_PIPELINE, Argument("file", metavar="FILE", help="a new file, that only you may read")),
    ),
    Verb("plan", "sync:plan", "show what the next batch would read, without recording it", _PLAN),
    Verb("decode", "decode:decode", "decode recorded records and print their changes", _DECODE),
    Verb("detect", "detect:detect", "detect the wire format of recorded records; exits with 3 if undecided", _DETECT),
    Verb("ddl", "ddl:ddl", "parse DDL statements and print what they change", _DDL),
    Verb("postgres", "postgres:postgres", "let a PostgreSQL database write its DDL into its log", _POSTGRES),
    Verb("tables", "show:tables", "show the pipeline's tables and their states", (_PIPELINE, _HISTORY, _JSON)),
    Verb("ledger", "show:ledger", "show the pipeline's batches", (_PIPELINE, _JSON)),
    Verb("lag", "lag:lag", "show how far the tables are behind the source, now and over time", _LAG),
    Verb("doctor", "doctor:doctor", "check packages, Java, Spark, broker, ledger and sink", _DOCTOR),
    Verb("formats", "show:formats", "list the wire formats, what each carries and its options", (_JSON,)),
)
