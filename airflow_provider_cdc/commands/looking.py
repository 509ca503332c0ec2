"""``tables``, ``ledger`` and ``formats``: what there is."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.commands.printing import DONE, guarded, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Format


def tables(given: Namespace) -> int:
    """Show the pipeline's tables."""

    def work() -> int:
        from airflow_provider_cdc.core.ledger import Ledger
        from airflow_provider_cdc.hooks.connections import ledger_url

        pipeline = CdcPipeline.from_yaml(given.pipeline)
        found = table_documents(Ledger(ledger_url(pipeline.ledger)).tables(pipeline.name).values())
        if given.json:
            print_json(found)
        else:
            rows = [
                (f"{t['database']}.{t['table']}", t["state"], len(t["columns"]), t["source_time"], t["reason"])
                for t in found
            ]
            print_table(("table", "state", "columns", "source time", "reason"), rows)
        return DONE

    return guarded(work, as_json=given.json)


def ledger(given: Namespace) -> int:
    """Show the pipeline's batches."""

    def work() -> int:
        from airflow_provider_cdc.core.ledger import Ledger
        from airflow_provider_cdc.hooks.connections import ledger_url

        pipeline = CdcPipeline.from_yaml(given.pipeline)
        batches = Ledger(ledger_url(pipeline.ledger)).batches(pipeline.name)
        names = ("seq", "kind", "status", "start", "end", "until", "planned_at", "committed_at", "lost")
        found = [{name: batch.document()[name] for name in names} for batch in batches]
        if given.json:
            print_json(found)
        else:
            rows = [
                (b.seq, b.status, (b.result or {}).get("status"), b.records, d["until"], d["committed_at"])
                for b, d in zip(batches, found, strict=True)
            ]
            print_table(("seq", "status", "outcome", "offsets", "until", "committed at"), rows)
        return DONE

    return guarded(work, as_json=given.json)


def formats(given: Namespace) -> int:
    """Show the wire formats."""

    def work() -> int:
        from airflow_provider_cdc.core.formats.registry import format_names, open_format

        found = [_format_document(open_format(name)) for name in format_names()]
        if given.json:
            print_json(found)
        else:
            _print_formats(found)
        return DONE

    return guarded(work, as_json=given.json)


def _format_document(wire: Format) -> dict[str, Any]:
    ddl = "ddl" in wire.carries
    return {
        "name": wire.name,
        "summary": wire.summary,
        "order": wire.order,
        "carries": sorted(wire.carries),
        "ddl": ("among_rows" if wire.ddl_among_rows else "own_topic") if ddl else None,
        "options": dict(wire.options),
    }


def _print_formats(found: list[dict[str, Any]]) -> None:
    """Print what each format carries, what its order is worth, and its options."""
    ddl = {"own_topic": "own topic", "among_rows": "among rows", None: "no"}
    order = {"exact": "exact", "second": "by the second"}
    rows = []
    for item in found:
        has = ["yes" if what in item["carries"] else "no" for what in ("rows", "progress", "transactions", "types")]
        rows.append((item["name"], order[item["order"]], has[0], ddl[item["ddl"]], *has[1:], item["summary"]))
    print_table(("format", "order", "rows", "DDL", "progress", "transactions", "types", "what it is"), rows)
    options = [(item["name"], key, text) for item in found for key, text in item["options"].items()]
    if options:
        print()
        print_table(("format", "option", "meaning"), options)


def table_documents(states: Any) -> list[dict[str, Any]]:
    """Return one document a table name: of tables that had the name one after the other, the one that has it now."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    states = list(states)
    owners: dict[str, dict[str, Any]] = {}
    for state in sorted(states, key=_rank):  # a table that moved away may still name a location that another one has
        if state["state"] != "dropped":
            owners[state["location"]] = state
    for state in states:
        name = (state["database"], state["table"])
        if name not in newest or _rank(state) > _rank(newest[name]):
            newest[name] = state
    found = [newest[name] for name in sorted(newest)]
    return [_told(state, owners.get(state["location"], state) is state) for state in found]


def _rank(state: dict[str, Any]) -> tuple[bool, bool, str, int]:
    alive = state["state"] != "dropped"
    return alive, state["state"] == "ok", state["applied_position"], state["applied_seq"]


def _told(state: dict[str, Any], owns_location: bool) -> dict[str, Any]:
    return {
        "database": state["database"],
        "table": state["table"],
        "state": state["state"],
        "reason": state["reason"],
        "location": state["location"] if owns_location else None,
        "version": state["version"] if owns_location else None,
        "position": state["applied_position"] or None,
        "source_time": _time(state["source_time"]),
        "columns": _columns(state["schema"]),
        "notes": state["notes"],
    }


def _time(micros: int | None) -> str | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat()


def _columns(document: dict[str, Any] | None) -> list[dict[str, Any]]:
    if document is None:
        return []
    from airflow_provider_cdc.core.model.schema import TableSchema

    schema = TableSchema.from_document(document)
    return [
        {"name": column.name, "type": str(column.type), "nullable": column.nullable, "key": column.id in schema.key}
        for column in schema.columns
    ]
