// SPDX-License-Identifier: Apache-2.0
// What happened to one pipeline, newest first: batches, schema changes, quarantine.

import { Fragment, h, useState } from "./react.js";
import { pipelinePath, useAnswer } from "./data.js";
import { Ago, Answered, Button, Older, RunLink, Section, State, Table, Time, code, column, muted, numbers } from "./parts.js";
import { bytes, changesText, duration, number, plural, zone } from "./texts.js";

/** Say how long a batch took, how long its parts, and what it cost of the processor and of the store. */
function Cost({ batch }) {
  if (batch.progress) return batch.progress.text;
  if (batch.seconds === null) return "–";
  const parts = Object.entries(batch.phases ?? {}).map(([name, seconds]) => `${name} ${duration(seconds)}`).join(", ");
  const cpu = batch.cpu_seconds === null ? "" : `CPU ${duration(batch.cpu_seconds)}`;
  const written = batch.added_bytes === null ? "" : bytes(batch.added_bytes);
  const cost = h("span", { className: "cdc-unbroken" }, [duration(batch.seconds), cpu, written].filter(Boolean).join(", "));
  return h(Fragment, null, cost, parts && muted(` ${parts}`));
}

export function BatchesSection({ ledger, name, seq }) {
  const [before, setBefore] = useState(seq === null ? null : seq + 1);
  const answer = useAnswer(pipelinePath(ledger, name, "/batches", { before }));
  const rows = (data) => data.batches.map((b) => ({
    key: b.seq,
    className: b.seq === seq ? "cdc-row-chosen" : undefined,
    cells: [
      number(b.seq), h(State, { state: b.status ?? b.batch_status }), h(Time, { at: b.until }), h(Time, { at: b.committed_at ?? b.started_at ?? b.planned_at }),
      number(b.records ?? b.offsets), changesText(b.changes), number(b.schema_changes), number(b.tables),
      b.quarantined ? h("strong", { className: "cdc-bad" }, number(b.quarantined)) : number(b.quarantined),
      h(Cost, { batch: b }), h("span", { title: b.application_id ?? undefined }, b.engine ?? "–"), h(RunLink, { run: b.run }),
      h("span", { className: "cdc-code", title: b.warnings?.join("\n") }, b.code ?? (b.warnings ? "catalog" : "")),
    ],
  }));
  const head = [numbers("Batch"), column("Result"), column(`Until (${zone()})`), column(`At (${zone()})`), numbers("Records"), column("Changes"), numbers("DDL"), numbers("Tables"),
    numbers("Quarantined"), column("Cost"), column("Engine"), column("Run"), column("Code")];
  return h(Section, { title: "Batches" }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: "No batch." }),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}

export function SchemaSection({ ledger, name }) {
  const [before, setBefore] = useState(null);
  const [snapshot, setSnapshot] = useState(false);
  const answer = useAnswer(pipelinePath(ledger, name, "/schema-changes", { before, snapshot }));
  const rows = (data) => data.schema_changes.map((c) => ({
    key: c.number,
    cells: [number(c.seq), h(Time, { at: c.source_time }), c.database, c.snapshot ? "snapshot" : h(Kind, { kind: c.kind }),
      code(c.statement || `records describe ${c.describes.join(", ")}`)],
  }));
  const head = [numbers("Batch"), column(`Source time (${zone()})`), column("Database"), column("Kind"), column("Statement, without its values")];
  return h(Section, { title: "Schema changes" }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: data.of_snapshots ? "No schema change but those of snapshots." : "No schema change." }),
    data.of_snapshots > 0 && h("p", { className: "cdc-note" },
      h(Button, { pressed: snapshot, onClick: () => { setSnapshot(!snapshot); setBefore(null); } }, `${snapshot ? "Hide" : "Show"} ${plural(data.of_snapshots, "statement")} of snapshots`)),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}

const KINDS = {
  mapping: ["○", "leaves the stored values as they are"],
  barrier: ["◆", "may change stored values or the key"],
  destructive: ["✕", "removes rows, columns or the table"],
  unknown: ["▲", "is not understood"],
};

function Kind({ kind }) {
  if (!KINDS[kind]) return "";
  const [sign, says] = KINDS[kind];
  return h("span", { title: says, className: ["destructive", "unknown"].includes(kind) ? "cdc-bad" : undefined }, h("span", { "aria-hidden": "true" }, `${sign} `), kind);
}

export function QuarantineSection({ ledger, name }) {
  const [before, setBefore] = useState(null);
  const answer = useAnswer(pipelinePath(ledger, name, "/quarantine", { before }));
  const rows = (data) => data.groups.map((g, n) => ({
    key: n,
    cells: [code(g.code), g.table ? `${g.database}.${g.table}` : "–", g.column ?? "", number(g.count),
      `${g.topic ?? "–"}/${number(g.partition)}:${number(g.offset)}`, number(g.seq), h(Fragment, null, number(g.newest_seq), " ", h(Ago, { at: g.at }))],
  }));
  const head = [column("Code or reason"), column("Table"), column("Column"), numbers("Records"), column("First record"), numbers("Batch"), column("Last batch")];
  return h(Section, { title: "Quarantine" }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: data.before ? "Nothing in the batches that were looked through." : "Nothing is in quarantine." }),
    data.unnamed > 0 && h("p", { className: "cdc-note" }, `and ${plural(data.unnamed, "more record")}, of which the ledger has no place: airflow-cdc quarantine ${name}.yaml list`),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}
