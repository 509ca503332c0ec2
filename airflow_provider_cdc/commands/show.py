# SPDX-License-Identifier: Apache-2.0
"""Run ``tables``, ``ledger`` and ``formats``: show tables, batches and wire formats."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.commands.output import DONE, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.documents.table_locations import owners_of_locations, precedence
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.printable import printable

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Format

_COSTS = ("seconds", "cpu_seconds", "added_bytes")  # of a batch, as its result has them
_STATEMENT = 100  # characters of a statement that a line shows


def tables(args: Namespace) -> int:
    """Show the pipeline's tables."""
    from airflow_provider_cdc.batch.quarantine import stale_rows
    from airflow_provider_cdc.batch.result import table_states
    from airflow_provider_cdc.batch.table_history import table_history
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger
    from airflow_provider_cdc.plugins.needs import need_lines, needs_in

    pipeline = CdcPipeline.from_yaml(args.pipeline)
    url = ledger_url(pipeline.ledger)
    opened = Ledger(url)
    if args.history:
        return _show_history(table_history(pipeline, opened), as_json=args.json)
    documents = table_documents(table_states(opened, pipeline.name).values(), pipeline.sink.root, args.pipeline)
    stale = stale_rows(pipeline, opened)
    for document in documents:
        document["stale_rows"] = stale.get(f"{document['database']}.{document['table']}", 0)
    if args.json:
        print_json(documents)
    else:
        rows = [
            (
                f"{t['database']}.{t['table']}",
                t["state"],
                len(t["columns"]),
                t["source_time"],
                t["stale_rows"],
                t["proved"],
                sum(t["contradictions"].values()),
                t["reason"].partition(" -> ")[0],
            )
            for t in documents
        ]
        head = ("table", "state", "columns", "source time", "stale rows", "proved", "contradictions", "reason")
        print_table(head, rows)
        for need in needs_in(url, pipeline.name, args.pipeline):
            print("", *need_lines(need), sep="\n")
    return DONE


def _show_history(history: list[dict[str, Any]], *, as_json: bool) -> int:
    """Print what happened to each table, in the order of the source's log, and the states that it had."""
    if as_json:
        print_json(history)
        return DONE
    for table in history:
        print(printable(f"{table['database']}.{table['table']}"))
        made = [{"event": "schema", "detail": None, **version} for version in table["versions"]]
        lines = sorted([*made, *table["events"]], key=lambda line: line["position"] or "")
        print_table(
            ("event", "time", "position", "policy", "statement", "detail"),
            [(e["event"], e["time"], e["position"], e["policy"], _short(e["statement"]), e["detail"]) for e in lines],
        )
        print()
        states = [(s["state"], s["since"], s["batch"], s["by"], s["reason"]) for s in table["states"]]
        print_table(("state", "since", "batch", "by", "reason"), states)
        print()
    return DONE


def _short(statement: str | None) -> str | None:
    return None if statement is None else " ".join(statement.split())[:_STATEMENT]


def ledger(args: Namespace) -> int:
    """Show the pipeline's batches."""
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger

    pipeline = CdcPipeline.from_yaml(args.pipeline)
    opened = Ledger(ledger_url(pipeline.ledger))
    batches, holder = opened.batches(pipeline.name), opened.holder(pipeline.name)
    costs = [{name: (batch.result or {}).get(name) for name in _COSTS} for batch in batches]
    plain = [_without(batch.document(), "pipeline", "result", "topics") for batch in batches]
    documents = [{**document, **cost} for document, cost in zip(plain, costs, strict=True)]
    if args.json:
        print_json(documents)
    else:
        rows = [
            (
                b.seq,
                b.status,
                (b.result or {}).get("status"),
                b.records,
                d["until"],
                d["committed_at"],
                *cost.values(),
            )
            for b, d, cost in zip(batches, documents, costs, strict=True)
        ]
        heads = ("seq", "status", "outcome", "offsets", "until", "committed at", "seconds", "CPU seconds", "bytes")
        print_table(heads, rows)
        if holder is not None:
            print(printable(f"\nheld by {holder['owner']} since {holder['since']}, at least until {holder['until']}"))
    return DONE


def _without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


def formats(args: Namespace) -> int:
    """Show the wire formats."""
    from airflow_provider_cdc.core.formats.registry import format_names, open_format

    documents = [_format_document(open_format(name)) for name in format_names()]
    if args.json:
        print_json(documents)
    else:
        _print_formats(documents)
    return DONE


def _format_document(fmt: Format) -> dict[str, Any]:
    ddl = "ddl" in fmt.carries
    return {
        "name": fmt.name,
        "summary": fmt.summary,
        "order": fmt.order,
        "carries": sorted(fmt.carries),
        "ddl": ("among_rows" if fmt.ddl_among_rows else "own_topic") if ddl else None,
        "options": dict(fmt.options),
    }


def _print_formats(documents: list[dict[str, Any]]) -> None:
    """Print what each format carries, how its changes are ordered, and its options."""
    ddl = {"own_topic": "own topic", "among_rows": "among rows", None: "no"}
    order = {"exact": "exact", "clock": "by clock"}
    rows = []
    for item in documents:
        has = ["yes" if what in item["carries"] else "no" for what in ("rows", "progress", "transactions", "types")]
        rows.append((item["name"], order[item["order"]], has[0], ddl[item["ddl"]], *has[1:], item["summary"]))
    print_table(("format", "order", "rows", "DDL", "progress", "transactions", "types", "what it is"), rows)
    options = [(item["name"], key, text) for item in documents for key, text in item["options"].items()]
    if options:
        print()
        print_table(("format", "option", "meaning"), options)


def table_documents(states: Iterable[TableState], root: str = "", file: str = "") -> list[dict[str, Any]]:
    """Return one document for each table name: that of the table which has the name now.

    :param root: of the lake; without it locations are places below the root.
    :param file: of the pipeline; what to do about a table that has stopped is said with it.
    """
    states = list(states)
    newest: dict[tuple[str, str], TableState] = {}
    for state in states:
        name = (state.database, state.table)
        if name not in newest or precedence(state) > precedence(newest[name]):
            newest[name] = state
    owners = owners_of_locations(states)
    current = [newest[name] for name in sorted(newest)]
    documents = []
    for state in current:
        owns = owners.get(state.location, state.table_id) == state.table_id
        document = _document(state, located(root, state.location) if root else state.location, owns)
        if file:
            document["remedy"] = _remedy(state, file)
        documents.append(document)
    return documents


def _remedy(state: TableState, file: str) -> dict[str, Any] | None:
    """Return what to do about a table that has stopped, as the page says it; None about one that has not."""
    from airflow_provider_cdc.ledger.health import UNSETTLED
    from airflow_provider_cdc.observability.remedies import remedy_of

    if state.state not in UNSETTLED:
        return None
    return remedy_of(state.code, state.reason).document(file, [f"{state.database}.{state.table}"])


def _document(state: TableState, location: str, owns_location: bool) -> dict[str, Any]:
    return {
        "database": state.database,
        "table": state.table,
        "state": state.state,
        "reason": state.reason,
        "mode": state.mode,
        "location": location if owns_location else None,
        "version": state.version if owns_location else None,
        "position": state.applied_position or None,
        "proved": state.proof.reach(state.applied_position) or None,
        "proved_until": state.proof.until or None,
        "proved_whole_until": state.proof.whole_until or None,
        "agreed_rows": state.proof.agreed_rows,
        "contradictions": state.proof.contradictions,
        "source_time": _time(state.source_time),
        "columns": _columns(state),
        "notes": state.notes,
    }


def _time(micros: int | None) -> str | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat()


def _columns(state: TableState) -> list[dict[str, Any]]:
    """Return the columns of a table; one that a rule makes says how, and states no type of the source."""
    if state.schema is None:
        return []
    from airflow_provider_cdc.core.model.laid_columns import LaidColumns
    from airflow_provider_cdc.core.model.schema import TableSchema

    schema = TableSchema.from_document(state.schema)
    columns = []
    for one in LaidColumns.from_document(state.laid).of(schema):
        source, made = schema.column(one.id), {"made": one.mark} if one.mark else {}
        kind = "" if source is None or one.mark else str(source.type)
        nullable = source is None or source.nullable
        columns.append({"name": one.name, "type": kind, "nullable": nullable, "key": one.id in schema.key, **made})
    return columns
