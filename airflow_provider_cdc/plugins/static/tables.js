// SPDX-License-Identifier: Apache-2.0
// The tables of one pipeline, and how each changed.

import { Fragment, h, useCallback, useState } from "./react.js";
import { PAGE, pipelinePath, useAnswer } from "./data.js";
import { Answered, Button, Older, Pager, Search, Section, State, Table, Time, column, numbers } from "./parts.js";
import { age, changesText, number, plural, zone } from "./texts.js";

/** Say how much of the log was read since a table stopped: what it lacks is among these records. */
export function ReadSince({ records, bound }) {
  if (records === null || records === undefined) return null;
  return h("span", { className: "cdc-late", title: "records of all tables: those of this one among them are not applied" }, ` ${bound ? "at least " : ""}${plural(records, "record")} read since`);
}

export function TablesSection({ ledger, name, onTable, chosen }) {
  const [view, setView] = useState({ offset: 0, search: "", state: "" });
  const answer = useAnswer(pipelinePath(ledger, name, "/tables", { ...view, limit: PAGE }));
  const look = useCallback((search) => setView((v) => ({ ...v, search, offset: 0 })), []);
  const tools = h(Fragment, null,
    h("select", { value: view.state, "aria-label": "State", onChange: (event) => setView({ ...view, state: event.target.value, offset: 0 }) },
      [["", "all states"], ["parked", "parked"], ["waiting", "waiting"], ["ok", "ok"], ["dropped", "dropped"]].map(([value, text]) => h("option", { key: value, value }, text))),
    h(Search, { value: view.search, onChange: look, label: "Table name" }));
  const rows = (data) => data.tables.map((t) => ({
    key: t.id,
    className: t.state === "parked" ? "cdc-row-bad" : t.id === chosen ? "cdc-row-chosen" : undefined,
    cells: [
      h("button", { type: "button", className: "cdc-link", onClick: () => onTable(t.id === chosen ? null : t.id) }, `${t.database}.${t.table}`, t.mode !== "mirror" && h("span", { className: "cdc-muted" }, ` ${t.mode}`)),
      h(Fragment, null, h(State, { state: t.state }), t.held?.since && h("span", { className: "cdc-late", title: `since batch ${t.held.seq}` }, ` for ${t.held.at_least ? "at least " : ""}${age(t.held.since)}`)),
      h("span", { className: "cdc-reason" }, t.reason || t.notes.join("; ")),
      h(Fragment, null, h(Time, { at: t.source_time }), h(ReadSince, { records: t.held?.records, bound: t.held?.at_least })),
      h(Proof, { table: t }),
      number(t.columns), number(t.version), number(t.applied_seq),
      h("span", { className: "cdc-location" }, t.location),
    ],
  }));
  const head = [column("Table"), column("State"), column("Reason or note"), column(`Applied up to (source time, ${zone()})`), column("Proved"), numbers("Columns"), numbers("Version"), numbers("Batch"), column("Location")];
  return h(Section, { title: "Tables", tools }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: view.search || view.state ? "No table matches." : "No table yet." }),
    h(Pager, { offset: view.offset, shown: data.tables.length, total: data.total, onMove: (offset) => setView({ ...view, offset }) }))));
}

function Proof({ table }) {
  const kinds = changesText(table.contradictions);
  const agreed = table.agreed_rows ? `${number(table.agreed_rows)} rows agreed` : "";
  return h("span", { className: "cdc-proof", title: agreed }, table.proved || "–", kinds && h("span", { className: "cdc-bad" }, ` ${kinds}`));
}

const COLUMN_CHANGES = {
  added: (c) => `+ ${c.column} ${c.after}`,
  dropped: (c) => `− ${c.column}`,
  renamed: (c) => `${c.before} → ${c.after}`,
  changed: (c) => `${c.column}: ${c.before} → ${c.after}`,
  key: (c) => `key (${c.before}) → (${c.after})`,
};

export function HistorySection({ ledger, name, table, onClose }) {
  const [before, setBefore] = useState(null);
  const answer = useAnswer(pipelinePath(ledger, name, "/table-history", { table_id: table, before }));
  const rows = (data) => data.versions.map((v) => ({
    key: v.seq,
    cells: [
      number(v.seq), h(Time, { at: v.committed_at }), v.table ? `${v.database}.${v.table}` : "–", h(State, { state: v.state }),
      h("span", { className: "cdc-reason" }, v.reason),
      h(Fragment, null, v.columns.map((c, n) => h("div", { key: n, className: "cdc-code" }, (COLUMN_CHANGES[c.change] ?? (() => c.change))(c)))),
      number(v.column_count),
    ],
  }));
  const head = [numbers("Batch"), column(`Committed (${zone()})`), column("Name"), column("State"), column("Reason"), column("Columns changed"), numbers("Columns")];
  return h(Section, { title: "History of the table", tools: h(Button, { onClick: onClose }, "Close") }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: "Nothing changed in the batches that were looked through." }),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}
