"""One batch on the Spark side: land, between, apply, and the result that names all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.config import TableRules
from airflow_provider_cdc.core.documents import Chunk, JobDocument, Result, TableState
from airflow_provider_cdc.core.errors import CdcError, DataError, Transient, UnavailableError
from airflow_provider_cdc.core.formats.registry import open_format
from spark_jobs.approval import demand_approval, refuse_unclear
from spark_jobs.batch_log import BatchLog
from spark_jobs.between import Between, Work
from spark_jobs.change_log import Manifest, log_folder
from spark_jobs.generations import Begin
from spark_jobs.history import History, history_of
from spark_jobs.parents import with_tables_below
from spark_jobs.parking import as_cdc_error
from spark_jobs.quarantine import merged
from spark_jobs.readers.spark_reader import read_with_spark
from spark_jobs.schema_changes import due, observed
from spark_jobs.source_log import SourceLog, has_times, new_begins
from spark_jobs.states import state_after, still_parked, unowned
from spark_jobs.storage import Storage
from spark_jobs.tasks.apply import apply
from spark_jobs.tasks.land import demand_same_topics, land_chunks, reading_groups
from spark_jobs.tasks.renumber import renumbered, restated, write_again
from spark_jobs.tasks.table_task import ApplyTask
from spark_jobs.tasks.vacate import vacate
from spark_jobs.writers.delta_location import DeltaLocation
from spark_jobs.writers.spark_writer import SparkWriter, can_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GIVEN_UP = 3  # tables in turn for which the store failed, after which no others are tried
Secrets = dict[str, dict[str, str]]
# runs a function over documents somewhere, in any order, and returns the answers in the order of the documents
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def sync(
    job: JobDocument, secrets: Secrets, run: Runner, say: Callable[[str], None], session: SparkSession | None = None
) -> Result:
    """Carry out one batch; the same call again does only what is missing.

    :param run: how tasks are handed out.
    :param say: takes one line of progress for people.
    :param session: lets the Spark reader and the Spark writer be used.
    """
    storage = Storage(job.sink_root, {**job.storage, **secrets.get("storage", {})})
    log = BatchLog(storage, job.pipeline)
    unknown = log.unknown_to(job)
    if unknown:
        return Result(job.pipeline, job.seq, "behind", lake_batches=[batch.document() for batch in unknown])
    log.claim(job)
    with log.alive(job):
        return _carry_out(job, secrets, run, say, session, storage, log)


def _carry_out(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    session: SparkSession | None,
    storage: Storage,
    log: BatchLog,
) -> Result:
    stored = log.result(job)
    if stored is not None:
        say(f"done before: batch {job.seq} has its result already")
        return _result(stored)
    history = history_of(job, storage)
    history.newest_position()  # the lake is the one that earlier batches were written to, or nothing is done
    if open_format(job.format, job.format_options).order == "second":
        job = replace(job, clocks=history.clocks())
    job = replace(job, begins=[list(begin) for begin in history.source_log().begins()])
    clock = {"land": time.monotonic()}
    landed = log.manifest(job)
    if landed is None:
        landed = log.write_manifest(job, _land(job, secrets, run, say, session))
    landed, source_log = _in_generations(job, secrets, run, say, storage, log, landed, history)
    clock["apply"] = time.monotonic()
    _check_budget(job, landed)
    result = _apply(job, secrets, run, say, storage, landed, session, history)
    end = time.monotonic()
    result.seconds = {"land": round(clock["apply"] - clock["land"], 3), "apply": round(end - clock["apply"], 3)}
    newest = max((g["max_position"] for g in landed["groups"] if g["database"]), default="")
    times = [g["max_source_time"] for g in landed["groups"] if g["database"]]
    times = [time for time in (*times, history.newest_source_time()) if time is not None]
    only_the_lake = {
        "newest_source_time": max(times, default=None),
        "max_position": max(newest, history.newest_position()),
        "clocks": landed["clocks"],
        "source_log": source_log.after(landed).document(),
    }
    return _result(log.write_result(job, {**result.document(), **only_the_lake}))


def _in_generations(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    storage: Storage,
    log: BatchLog,
    landed: dict[str, Any],
    history: History,
) -> tuple[dict[str, Any], SourceLog]:
    """Return what was landed with the generations that begin in it, and the source's log with them.

    :raises DataError: ``source.new_generation``, one begins that nobody approved; ``source.generation_unclear``, the
        records do not tell which are of it.
    """
    as_landed, known = landed, [*job.schema_changes, *history.deferred()]
    source_log = history.source_log().with_begins(Begin(*begin) for begin in landed.get("begins", ()))
    while begins := new_begins(landed, source_log, storage):
        refuse_unclear(begins, source_log.read_early(begins), timed=has_times(landed))
        approved = demand_approval(job, begins, len(source_log.generations) - 1, log, say)
        source_log = source_log.with_begins(begins)
        every = source_log.begins()
        landed = renumbered(landed, every, begins, storage, run, partial(write_again, job, secrets, every))
        landed["restated"] = landed.get("restated", []) + restated(known, begins)
        landed["new_generations"] = landed.get("new_generations", []) + approved
    if landed is not as_landed:
        log.replace_manifest(job, landed)
    return landed, source_log


def _result(stored: dict[str, Any]) -> Result:
    """Return a stored result without what only the lake keeps with it."""
    kept = {field.name for field in fields(Result)}
    return Result.from_document({name: value for name, value in stored.items() if name in kept})


def _land(
    job: JobDocument, secrets: Secrets, run: Runner, say: Callable[[str], None], session: SparkSession | None
) -> dict[str, Any]:
    demand_same_topics(job)
    total = sum(chunk.end - chunk.start for chunk in job.chunks)
    if session is not None and job.policy.get("reader") == "spark":
        say(f"land: up to {total} records of {len(job.chunks)} chunks through Spark's Kafka source")
        reports = read_with_spark(session, job, secrets)
    else:
        groups = reading_groups(job.chunks, job.parallelism, job.policy["chunk_records"])
        say(f"land: up to {total} records of {len(job.chunks)} chunks in {len(groups)} tasks")
        reports = run(partial(_land_task, job, secrets), [[asdict(chunk) for chunk in group] for group in groups])
    landed: dict[str, Any] = {
        "seq": job.seq,
        "groups": [],
        "changes": {},
        "schema_changes": [],
        "errors": [],
        "unreadable": [],
        "descriptions": [],
        "stretches": [],
        "statements": [],
    }
    landed["records"] = sum(report["records"] for report in reports)
    landed["progress"] = max((report["progress"] for report in reports if report["progress"] is not None), default=None)
    for report in reports:
        for name in ("groups", "schema_changes", "errors", "descriptions", "stretches", "statements"):
            landed[name] += report[name]
        landed["unreadable"] = merged(landed["unreadable"], report["unreadable"])
        for name, count in report["changes"].items():
            landed["changes"][name] = landed["changes"].get(name, 0) + count
    clocks = {(topic, partition): clock for topic, partition, *clock in job.clocks}
    clocks |= {(topic, partition): clock for report in reports for topic, partition, *clock in report["clocks"]}
    landed["clocks"] = [[*place, *clock] for place, clock in sorted(clocks.items())]
    say(f"land: {landed['records']} records, {len(landed['schema_changes'])} schema changes")
    return landed


def _land_task(job: JobDocument, secrets: Secrets, chunks: list[dict[str, Any]]) -> dict[str, Any]:
    return land_chunks(job, [Chunk(**chunk) for chunk in chunks], secrets)


def _check_budget(job: JobDocument, landed: dict[str, Any]) -> None:
    """Refuse a batch with too many records whose table cannot be told; those of a table concern the table only."""
    limit = job.policy.get("quarantine_limit", 0)
    for item in landed.get("unreadable", ()):
        if not item["table"] and item["count"] > limit:
            raise DataError(
                "land.quarantine_exceeded",
                f"{item['count']} records whose table cannot be told could not be decoded "
                f"({item['error_code']}: {item['error']}), policy.quarantine_limit is {limit}",
                where={name: item[name] for name in ("topic", "partition", "offset")},
                hint="check source.format and the topics, or raise the limit; nothing was applied",
            )


def _apply(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    storage: Storage,
    landed: dict[str, Any],
    session: SparkSession | None,
    history: History,
) -> Result:
    manifest = Manifest.from_document(landed)
    read = [*history.deferred(), *landed["schema_changes"], *landed.get("restated", ())]
    fresh, later = due(job, read)
    seen, unclear = observed(job, landed)
    between = Between(job, manifest, fresh, seen, history, unclear)
    work = between.work()
    news = [change for change in between.fresh if change.copy_of is None]
    say(f"apply: {len(work.tasks)} tables, {len(news)} new schema changes")
    reports = _run_tasks(job, secrets, run, between, work)
    if session is not None:
        _commit_staged(job, session, storage, work.tasks, reports)
    _demand_answers(reports)
    states = [
        state_after(job, task, reports[task.table_id], between.states.get(task.table_id)) for task in work.tasks
    ] + work.settled
    states = with_tables_below(between.now, job.states, states, between.referring())
    for left in work.vacated:
        report = reports.get(left.table_id)
        if report is None or report["status"] not in ("waiting", "parked"):
            states = _vacated(job, left, storage, states)
    result = Result(job.pipeline, job.seq, "done")
    result.records = landed["records"]
    result.changes = {name[4:]: count for name, count in sorted(landed["changes"].items()) if name.startswith("row.")}
    result.schema_changes = len(news)
    result.new_schema_changes = [change.document() for change in between.fresh]
    result.deferred = later
    result.new_generations = landed.get("new_generations", [])
    result.statements = [change.statement for change in news if change.statement]
    failures = [failure for report in reports.values() for failure in report["failures"]]
    result.quarantined = landed["changes"].get("error", 0) + len(failures)
    result.quarantine = [*landed["errors"], *failures][:100]
    for report in reports.values():
        for reason, count in report["lossy"].items():
            result.lossy[reason] = result.lossy.get(reason, 0) + count
    states += unowned(job, work)
    result.states = states
    result.tables = [_line(task, reports[task.table_id]) for task in work.tasks]
    if any(state.state == "parked" for state in [*states, *still_parked(job, states)]):
        result.status = "parked"
    return result


def _vacated(job: JobDocument, left: TableState, storage: Storage, states: list[TableState]) -> list[TableState]:
    """Empty a location that no table has any more; return the states, with the table parked where that fails."""
    try:
        vacate(job, left, storage.options)
        return states
    except Exception as error:
        found = as_cdc_error(error, {"table": f"{left.database}.{left.table}", "location": left.location})
        if isinstance(found, Transient):
            raise found from error
        reason = f"its former location cannot be emptied: {found}"
        return [replace(s, state="parked", reason=reason) if s.table_id == left.table_id else s for s in states]


def _bundles(tasks: Sequence[ApplyTask], parallelism: int) -> list[list[dict[str, Any]]]:
    """Spread tables over tasks so that none is much longer than the others; a task costs more than a small table."""
    count = max(1, min(len(tasks), parallelism * 3))
    bundles: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    loads = [0] * count
    for task in sorted(tasks, key=lambda t: -t.rows):
        lightest = loads.index(min(loads))
        bundles[lightest].append(task.document())
        loads[lightest] += task.rows + 2_000  # a commit costs about as much as typing so many rows
    return [bundle for bundle in bundles if bundle]


def _run_tasks(
    job: JobDocument, secrets: Secrets, run: Runner, between: Between, work: Work
) -> dict[str, dict[str, Any]]:
    """Run the tasks and return their reports by table.

    Tables that have to go back are run again from there; those that hold more than the ledger knows, from what they
    hold.
    """
    reports: dict[str, dict[str, Any]] = {}
    due = work.tasks
    while due:
        answers = run(partial(_apply_tasks, job, secrets), _bundles(due, job.parallelism))
        reports.update({report["table_id"]: report for answer in answers for report in answer})
        due = [again for task in due if (again := _again(between, task, reports[task.table_id])) is not None]
        anew = {task.table_id: task for task in due}
        work.tasks = [anew.get(task.table_id, task) for task in work.tasks]
    return reports


def _again(between: Between, task: ApplyTask, report: dict[str, Any]) -> ApplyTask | None:
    """Return the task that follows a report, None where nothing does; a table that cannot go back is parked."""
    try:
        match report["status"]:
            case "rewind":
                return between.again(task, report["rewind_to"])
            case "ahead":
                return between.go_on(task, TableState(**report["state"]))
            case _:
                return None
    except Exception as error:
        found = as_cdc_error(error, {"table": f"{task.database}.{task.table}"})
        if isinstance(found, Transient):
            raise found from error
        report |= {"status": "parked", "reason": str(found), "error": found.document()}
        return None


def _demand_answers(reports: Mapping[str, dict[str, Any]]) -> None:
    """Let the batch run again where the store failed for a table; what is committed stays, and is not repeated."""
    failed = [report["error"] for report in reports.values() if report["status"] == "unavailable"]
    if failed:
        first = UnavailableError(failed[0]["code"], failed[0]["message"], where=failed[0]["where"])
        first.hint = failed[0]["hint"]
        if len(failed) > 1:
            first.message += f" (and for {len(failed) - 1} other tables)"
        raise first


def _apply_tasks(job: JobDocument, secrets: Secrets, bundle: list[dict[str, Any]]) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = []
    for task in map(ApplyTask.from_document, bundle):
        if [report["status"] for report in reports[-_GIVEN_UP:]] == ["unavailable"] * _GIVEN_UP:
            # the store is away, not one table: each further one would wait for it as long
            reports.append({**reports[-1], "table_id": task.table_id})
            continue
        reports.append(apply(job, task, secrets, _stage(job, task)))
    return reports


def _stage(job: JobDocument, task: ApplyTask) -> str | None:
    """Return the folder that a table is staged in for the Spark writer, None where the task commits itself."""
    rule = TableRules.from_document(job.tables).rule(f"{task.database}.{task.table}")
    wanted = rule.writer or job.policy.get("writer")
    large = wanted == "auto" and task.rows >= job.policy.get("spark_writer_rows", 0)
    names = [column["name"] for column in task.timeline["epochs"][-1][1]["columns"]]
    if not job.session or not (large or wanted == "spark") or not can_name(names):
        return None
    return f"{log_folder(f'_cdc/{job.pipeline}', job.seq)}/staged/{task.table_id}"


def _commit_staged(
    job: JobDocument,
    session: SparkSession,
    storage: Storage,
    tasks: Sequence[ApplyTask],
    reports: dict[str, dict[str, Any]],
) -> None:
    """Let the Spark writer commit what tasks staged, a few tables at a time, and take over the tables' new versions."""
    writer = SparkWriter(session, storage)
    staged = [(task, folder) for task in tasks if (folder := _stage(job, task)) is not None]

    def commit(pair: tuple[ApplyTask, str]) -> None:
        task, folder = pair
        report = reports[task.table_id]
        try:
            if report["status"] == "committed":
                writer.commit_staged(folder)
                report["version"] = DeltaLocation(task.location, storage.options).version
            storage.delete_folder(folder)
        except Exception as error:
            found = as_cdc_error(error, {"table": f"{task.database}.{task.table}"})
            status = "unavailable" if isinstance(found, Transient) else "parked"
            report |= {"status": status, "reason": str(found), "error": found.document()}

    with ThreadPoolExecutor(max_workers=min(4, job.parallelism)) as pool:
        list(pool.map(commit, staged))


def _line(task: ApplyTask, report: dict[str, Any]) -> dict[str, Any]:
    told = {name: report[name] for name in ("status", "action", "upserts", "deletes", "reason", "seconds")}
    return {"database": task.database, "table": task.table, **told}


def failed(job: JobDocument, error: CdcError) -> Result:
    """Return the result of a batch that could not be carried out."""
    return Result(job.pipeline, job.seq, "failed", error=error.document())
