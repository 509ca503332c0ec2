# SPDX-License-Identifier: Apache-2.0
"""Run ``quarantine``: list, show, export, replay or discard records and rows that could not be carried."""

from __future__ import annotations

import base64
import json
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.commands.output import DONE, json_line, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.file_log.record_lines import lines, opened, record_of

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.quarantine import RecordId
    from airflow_provider_cdc.core.documents import QuarantineEntry

ACTIONS = ("list", "show", "export", "replay", "discard")


def quarantine(args: Namespace) -> int:
    """Read or settle a pipeline's quarantine."""
    actions: dict[str, Callable[[Namespace, CdcPipeline], int]] = {
        "list": _list,
        "show": _show,
        "export": _export,
        "replay": _replay,
        "discard": _discard,
    }
    if args.file is not None and args.action not in ("export", "replay"):
        raise ConfigurationError([f"FILE: {args.action} takes none"])
    return actions[args.action](args, CdcPipeline.from_yaml(args.pipeline))


def _list(args: Namespace, pipeline: CdcPipeline) -> int:
    from airflow_provider_cdc.batch.quarantine import choose, entries

    every = entries(pipeline)
    selected = choose(every if args.all else [e for e in every if e.decision is None], args.record, args.tables)
    if args.json:
        print_json([_document(entry) for entry in selected])
    elif not selected:
        print(f"{pipeline.name}: the quarantine is empty")
    else:
        head = ("kind", "table", "topic", "partition", "offset", "batch", "code", "reason", "decision")
        print_table(head, [_row(entry) for entry in selected])
    return DONE


def _row(entry: QuarantineEntry) -> list[object]:
    decision = entry.decision or {}
    said = f"{decision['action']} by {decision['by']} at {decision['at']}: {decision['why']}" if decision else None
    return [entry.kind, _table(entry), *entry.record, entry.seq, entry.code, entry.text, said]


def _table(entry: QuarantineEntry) -> str | None:
    return f"{entry.database}.{entry.table}" if entry.table else None


def _document(entry: QuarantineEntry) -> dict[str, Any]:
    """Return an entry as JSON data; ``key`` and ``value`` are added where contents were read."""
    document = {
        "kind": entry.kind,
        "topic": entry.topic,
        "partition": entry.partition,
        "offset": entry.offset,
        "table": _table(entry),
        "batch": entry.seq,
        "code": entry.code,
        "reason": entry.text,
        "position": entry.position,
        "bytes": entry.size,
    }
    return document if entry.decision is None else {**document, "decision": entry.decision}


def _show(args: Namespace, pipeline: CdcPipeline) -> int:
    """Print entries with what they hold: the only verb that prints values of rows."""
    from airflow_provider_cdc.batch.quarantine import record_lines

    selected = _selected(args, pipeline, contents=True)
    records = {(line["topic"], line["partition"], line["offset"]): line for line in record_lines(pipeline, selected)}
    documents = []
    for entry in selected:
        record = records.get(entry.record, {})
        texts = {name: _readable(record.get(name)) for name in ("key", "value")}
        documents.append({**_document(entry), **texts, "before": entry.before, "after": entry.after})
    if args.json:
        print_json(documents)
    else:
        for document in documents:
            print_table(("", ""), [(name, value) for name, value in document.items() if value is not None])
            print()
    return DONE


def _readable(content: str | None) -> str | None:
    """Return bytes in base64 as text; other bytes are shown as escapes."""
    return None if content is None else base64.b64decode(content).decode("utf-8", "backslashreplace")


def _selected(args: Namespace, pipeline: CdcPipeline, *, contents: bool = False) -> list[QuarantineEntry]:
    from airflow_provider_cdc.batch.quarantine import choose, open_entries

    return choose(open_entries(pipeline, contents=contents), args.record, args.tables)


def _export(args: Namespace, pipeline: CdcPipeline) -> int:
    """Write records in the form that ``decode`` reads."""
    from airflow_provider_cdc.batch.quarantine import record_lines

    selected = _selected(args, pipeline, contents=True)
    exported = record_lines(pipeline, selected)
    if args.file in (None, "-"):
        for line in exported:
            print_json(line)
        return DONE
    with open(args.file, "w", encoding="utf-8") as file:
        file.writelines(f"{json_line(line)}\n" for line in exported)
    missing = len({entry.record for entry in selected}) - len(exported)
    if args.json:
        print_json({"pipeline": pipeline.name, "file": args.file, "records": len(exported), "missing": missing})
    else:
        print(f"{pipeline.name}: {len(exported)} records in {args.file}" + (f", {missing} missing" if missing else ""))
    return DONE


def _replay(args: Namespace, pipeline: CdcPipeline) -> int:
    from airflow_provider_cdc.batch.quarantine import choose, open_entries, record_lines, replay
    from airflow_provider_cdc.commands.sync import run_batch_and_print

    if args.file is None:
        selected = _selected(args, pipeline, contents=True)
        repaired = record_lines(pipeline, selected)
    else:
        repaired = _repaired(args.file)
        records = [(line["topic"], line["partition"], line["offset"]) for line in repaired]
        selected = choose(open_entries(pipeline), records) if records else []
    there = {(line["topic"], line["partition"], line["offset"]) for line in repaired}
    selected = [entry for entry in selected if entry.record in there]
    if not selected:
        return _nothing(args, pipeline)
    return run_batch_and_print(
        args, lambda **course: replay(pipeline, selected, repaired, why=args.why or "", by=args.by or "", **course)
    )


def _repaired(name: str) -> list[dict[str, Any]]:
    """Return the records of a file, as they are stated.

    :raises ConfigurationError: names the lines that are not records.
    """
    problems, repaired = [], []
    try:
        with opened(name) as stream:
            for number, line in enumerate(lines(stream), 1):
                entry = record_of(line)
                if isinstance(entry, str) or line is None:
                    problems.append(f"{name}, line {number}: {entry}")
                else:
                    repaired.append(json.loads(line))
    except OSError as error:
        raise ConfigurationError([f"cannot read {name}: {error.strerror or error}"]) from None
    if problems:
        raise ConfigurationError(problems)
    return repaired


def _discard(args: Namespace, pipeline: CdcPipeline) -> int:
    from airflow_provider_cdc.batch.quarantine import discard
    from airflow_provider_cdc.commands.sync import run_batch_and_print

    if not (args.record or args.tables or args.all):
        raise ConfigurationError(["discard: name what is to go with --record or --tables, or --all"])
    if not args.why:
        raise ConfigurationError(["discard: --why is recorded with the decision, and needed"])
    selected = _selected(args, pipeline)
    if not selected:
        return _nothing(args, pipeline)
    return run_batch_and_print(
        args, lambda **course: discard(pipeline, selected, why=args.why, by=args.by or "", **course)
    )


def _nothing(args: Namespace, pipeline: CdcPipeline) -> int:
    if args.json:
        print_json({"pipeline": pipeline.name, "status": "nothing_to_do"})
    else:
        print(f"{pipeline.name}: nothing in the quarantine to {args.action}")
    return DONE


def record_id(text: str) -> RecordId:
    """Return topic, partition and offset of ``topic/partition:offset``.

    :raises ValueError: it has another form.
    """
    where, colon, offset = text.rpartition(":")
    topic, slash, partition = where.rpartition("/")
    if not (colon and slash and topic):
        raise ValueError(text)
    return topic, int(partition), int(offset)
