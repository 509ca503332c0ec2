// SPDX-License-Identifier: Apache-2.0
// The page "CDC pipelines" in Airflow's UI: written by hand, without a build. React and the router are the UI's own.
//
// Names of tables, reasons and statements come from logs and are hostile: they reach the page only as text nodes and
// as values of attributes that React sets, never as HTML or as addresses.

const { createElement: h, Fragment, useCallback, useEffect, useState } = globalThis.React;
const { Link, useSearchParams } = globalThis.ReactRouterDOM;

const REFRESH_MS = 30_000;
const NEW_MS = 120_000; // a figure that is younger shows no age
const PAGE = 50;
const SPANS = { "6 hours": 6, "24 hours": 24, "7 days": 24 * 7, "30 days": 24 * 30 };
const api = (path) => new URL(`cdc/api/${path}`, document.baseURI).href;

// ---- data

/** Return the answer of an address: { data, error, reload }; asked again each half minute while the page is seen. */
function useAnswer(address) {
  const [answer, setAnswer] = useState({ address: null });
  const [count, setCount] = useState(0);
  const reload = useCallback(() => setCount((n) => n + 1), []);
  useEffect(() => {
    if (address === null) return undefined;
    const abort = new AbortController();
    const load = async () => {
      try {
        const response = await fetch(address, { credentials: "same-origin", signal: abort.signal });
        const data = await response.json().catch(() => ({}));
        const detail = typeof data.detail === "string" ? data.detail : `the api-server answered ${response.status}`;
        setAnswer(response.ok ? { address, data } : { address, error: detail });
      } catch (error) {
        if (error.name !== "AbortError") setAnswer({ address, error: "the api-server does not answer" });
      }
    };
    load();
    const timer = setInterval(() => document.visibilityState === "visible" && load(), REFRESH_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [address, count]);
  return { ...(answer.address === address ? answer : {}), reload };
}

function query(parameters) {
  const known = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return new URLSearchParams(known).toString();
}

const pipelinePath = (ledger, name, part, parameters = {}) =>
  api(`pipelines/${encodeURIComponent(name)}${part}?${query({ ledger, ...parameters })}`);

// ---- texts

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

/** Show a time as ISO text in UTC, to the second, with its age as tooltip. */
function Time({ at }) {
  if (at === null || at === undefined) return h("span", { className: "cdc-muted" }, "–");
  const moment = new Date(typeof at === "number" ? at / 1000 : at); // source times are microseconds
  if (Number.isNaN(moment.getTime())) return h("span", null, String(at));
  const text = moment.toISOString().replace("T", " ").slice(0, 19);
  return h("time", { dateTime: moment.toISOString(), title: `${ago(moment)} (UTC)` }, text);
}

const age = (at) => duration((Date.now() - Date.parse(at)) / 1000);
const ago = (moment) => `${duration((Date.now() - moment.getTime()) / 1000)} ago`;

// ---- parts

function State({ state }) {
  return h("span", { className: `cdc-state cdc-state-${state}` }, state);
}

function Note({ kind = "plain", children }) {
  return h("p", { className: `cdc-note cdc-note-${kind}`, role: kind === "bad" ? "alert" : undefined }, children);
}

const FIRST_PIPELINE = `name: shop
source:
  topics: shopdb\\.shop\\..*
  format: debezium-json
  schema_topic: shopdb
sink:
  root: /data/lake
policy:
  engine: inline`;

const FIRST_TASK = 'CdcSyncOperator(task_id="sync", pipeline="/dags/shop.yaml")';

/** Invite to a first pipeline: nothing is wrong where none has run. */
function Welcome({ title, children }) {
  const code = (text) => h("code", { className: "cdc-code" }, text);
  return h("div", { className: "cdc-welcome" }, h("h2", null, title), children,
    h("ol", null,
      h("li", null, "Describe where the changes are and where the tables are to be, as ", code("shop.yaml"), ":", h("pre", { className: "cdc-code" }, FIRST_PIPELINE)),
      h("li", null, code("airflow-cdc doctor shop.yaml"), " looks at broker, ledger and lake, and says what is missing."),
      h("li", null, code("airflow-cdc sync shop.yaml"), " runs the first batch. In a DAG it is ", code(FIRST_TASK), ".")),
    h("p", null, "The page Quick start of the documentation has each step."));
}

const LEDGER_STATES = {
  "ledger.version": "Another release of the provider made the ledger's tables. Install that release here, or let pipelines and page name an empty database: the next run takes over what the lake knows.",
};

/** Say why a ledger cannot be read, or show what was read from it. */
function Answered({ answer, children }) {
  if (answer.error) return h(Note, { kind: "bad" }, answer.error);
  if (!answer.data) return h(Note, null, "Loading …");
  const { ledger } = answer.data;
  if (!ledger || ledger.state === "ok") return children(answer.data);
  if (ledger.state === "missing") {
    return h(Welcome, { title: "There is no ledger yet: the first batch creates it" },
      h("p", null, "Have batches run already? Then the api-server looks elsewhere than they do: compare page_ledgers in the section [cdc] with the ledger of the pipelines, and of a file AIRFLOW_HOME and the mounted folders."));
  }
  const general =
    ledger.state === "unreachable"
      ? "The ledger is not reachable from the api-server."
      : "The ledger cannot be used from the api-server.";
  const detail = LEDGER_STATES[ledger.code] ?? `${general} The log of the api-server says why.`;
  return h(Note, { kind: "bad" }, `${detail} [${ledger.code}]`);
}

function Table({ head, rows, empty }) {
  if (rows.length === 0) return h(Note, null, empty);
  const cells = (row) => row.cells.map((cell, n) => h("td", { key: n, className: head[n].number && "cdc-number" }, cell));
  return h("div", { className: "cdc-scroll" },
    h("table", null,
      h("thead", null, h("tr", null, head.map((c, n) => h("th", { key: n, className: c.number && "cdc-number" }, c.text)))),
      h("tbody", null, rows.map((row) => h("tr", { key: row.key, className: row.className }, cells(row))))));
}

const column = (text) => ({ text });
const numbers = (text) => ({ text, number: true });

function Button({ onClick, disabled, pressed, children }) {
  return h("button", { type: "button", onClick, disabled, "aria-pressed": pressed }, children);
}

function Section({ title, tools, children }) {
  return h("section", { className: "cdc-section" },
    h("header", null, h("h2", null, title), h("div", { className: "cdc-tools" }, tools)), children);
}

function Pager({ offset, shown, total, onMove }) {
  if (total <= PAGE) return null;
  return h("div", { className: "cdc-pager" },
    h(Button, { onClick: () => onMove(Math.max(0, offset - PAGE)), disabled: offset === 0 }, "Previous"),
    h("span", null, `${number(offset + 1)} to ${number(offset + shown)} of ${number(total)}`),
    h(Button, { onClick: () => onMove(offset + PAGE), disabled: offset + shown >= total }, "Next"));
}

/** Offer the older entries of a list that is read backwards. */
function Older({ before, atNewest, onMove }) {
  if ((before === null || before === undefined) && atNewest) return null;
  return h("div", { className: "cdc-pager" },
    h(Button, { onClick: () => onMove(null), disabled: atNewest }, "Newest"),
    h(Button, { onClick: () => onMove(before), disabled: before === null || before === undefined }, "Older"));
}

function Search({ value, onChange, label }) {
  const [text, setText] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => text !== value && onChange(text), 300);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return h("input", { type: "search", value: text, placeholder: label, "aria-label": label, maxLength: 200,
    onChange: (event) => setText(event.target.value) });
}

function RunLink({ run, children }) {
  if (!run) return h("span", { className: "cdc-muted" }, "–");
  const part = encodeURIComponent;
  const mapped = run.map_index >= 0 ? `/mapped/${run.map_index}` : "";
  // The task's first tab is its log, of the try that the address names.
  const to = `/dags/${part(run.dag_id)}/runs/${part(run.run_id)}/tasks/${part(run.task_id)}${mapped}?${query({ try_number: run.try_number })}`;
  return h(Link, { to, title: `${run.dag_id} / ${run.run_id} / ${run.task_id}, try ${run.try_number}` }, children ?? run.run_id);
}

/** Show the lag of now, with its age where it is not of the last minutes; an old one is unknown, and says when it was seen. */
function Lag({ lag, since }) {
  const held = since ? h("span", { className: "cdc-late" }, ` tables not applied for ${age(since)}`) : null;
  return h(Fragment, null, h(Figure, { lag }), held);
}

function Figure({ lag }) {
  if (!lag) return h("span", { className: "cdc-muted", title: "no sensor or sync has recorded the lag" }, "unknown");
  const records = lag.records === null ? "" : `, ${plural(lag.records, "record")}`;
  const figure = `${duration(lag.seconds)}${records}`;
  const seen = ago(new Date(lag.seen_at));
  const usual = lag.usual_seconds === null ? "somebody looked once" : `somebody looks every ${duration(lag.usual_seconds)}`;
  if (!lag.present) return h("span", { className: "cdc-late", title: `then ${figure}; ${usual}` }, `unknown, last seen ${seen}`);
  const old = Date.now() - Date.parse(lag.seen_at) > NEW_MS;
  return h("span", { title: `seen ${seen}; ${usual}` }, figure, old && h("span", { className: "cdc-muted" }, ` ${seen}`));
}

const STATES = {
  stale: "nobody has run it for longer than twice the usual time",
  interrupted: "a batch is begun and nobody works on it: the next run finishes it",
  running: "somebody works on a batch",
  new: "no batch was planned yet",
};

/** Show the state of a pipeline, and of one that rests for how long. */
function PipelineState({ pipeline }) {
  const usual = pipeline.usual_seconds === null ? "" : `; usually it runs every ${duration(pipeline.usual_seconds)}`;
  const rest = pipeline.rests ? ` not run for ${age(pipeline.ran_at)}` : "";
  return h("span", { title: STATES[pipeline.state] && `${STATES[pipeline.state]}${usual}` },
    h(State, { state: pipeline.state }), rest && h("span", { className: "cdc-late" }, rest));
}

/** Say how much of the log was read since a table stopped: what it lacks is among these records. */
function ReadSince({ records, bound }) {
  if (records === null || records === undefined) return null;
  return h("span", { className: "cdc-late", title: "records of all tables: those of this one among them are not applied" }, ` ${bound ? "at least " : ""}${plural(records, "record")} read since`);
}

/** Say when and why the last attempt at a batch failed, with the way to its log. */
function Attempt({ attempt }) {
  return h("span", { className: "cdc-attempt" }, " ", h("span", { className: "cdc-code" }, attempt.code), ` ${ago(new Date(attempt.at))} `,
    attempt.run && h(RunLink, { run: attempt.run }, `log of ${attempt.run.task_id}, ${attempt.run.run_id}`));
}

// ---- list of pipelines

function LedgerPipelines({ ledger, single }) {
  const [search, setSearch] = useState("");
  const [offset, setOffset] = useState(0);
  const answer = useAnswer(api(`pipelines?${query({ ledger, search, offset, limit: PAGE })}`));
  const look = useCallback((text) => { setSearch(text); setOffset(0); }, []);
  const rows = (data) => data.pipelines.map((p) => ({
    key: p.name,
    className: p.tables.parked || p.attempt ? "cdc-row-bad" : undefined,
    cells: [
      h(Link, { to: { search: `?${query({ pipeline: p.name, ledger })}` } }, p.name),
      h(Fragment, null, h(PipelineState, { pipeline: p }), p.attempt && h(Attempt, { attempt: p.attempt })),
      h(Lag, { lag: p.lag, since: p.unsettled_since }),
      h(Fragment, null, h(Time, { at: p.cut?.source_time }), p.cut && !p.cut.consistent && h("span", { className: "cdc-muted" }, " not of all tables")),
      p.tables.parked ? h("strong", { className: "cdc-bad" }, number(p.tables.parked)) : "0",
      number(p.tables.waiting),
      number(p.tables.ok),
      p.batch ? h(Fragment, null, `${number(p.batch.seq)} `, h("span", { className: "cdc-muted" }, p.batch.outcome ?? p.batch.status)) : "–",
      h(Time, { at: p.batch?.committed_at ?? p.batch?.planned_at }),
      h(RunLink, { run: p.batch?.run }),
    ],
  }));
  const head = [column("Pipeline"), column("State"), column("Lag"), column("Cut (source time, UTC)"), numbers("Parked"), numbers("Waiting"),
    numbers("OK"), column("Last batch"), column("At (UTC)"), column("Run")];
  return h(Section, { title: single ? "Pipelines" : `Ledger ${ledger}`, tools: h(Search, { value: search, onChange: look, label: "Pipeline name" }) },
    h(Answered, { answer }, (data) => h(Fragment, null,
      data.total + data.hidden === 0 && !search
        ? h(Welcome, { title: "No pipeline has run yet" })
        : h(Table, { head, rows: rows(data), empty: search ? "No pipeline has such a name." : "You may see no pipeline." }),
      data.hidden > 0 && h(Note, null, `${plural(data.hidden, "pipeline")} not shown: you may not read the DAG, or this Airflow does not know it.`),
      h(Pager, { offset, shown: data.pipelines.length, total: data.total, onMove: setOffset }))));
}

function PipelineList() {
  const answer = useAnswer(api("ledgers"));
  return h(Answered, { answer }, ({ ledgers }) =>
    ledgers.length === 0
      ? h(Note, null, "The option page_ledgers of the section [cdc] names no ledger.")
      : ledgers.map((ledger) => h(LedgerPipelines, { key: ledger, ledger, single: ledgers.length === 1 })));
}

// ---- lag over time

const PLOT = { width: 1200, height: 220, left: 64, right: 12, top: 12, bottom: 26 };

const FULL_SECONDS = [10, 60, 120, 300, 600, 1200, 3600, 7200, 14_400, 28_800, 57_600, 86_400, 172_800];

/** Return a round number, or a round duration in seconds, that is not below a value. */
function roundUp(value, member) {
  const full = member === "seconds" ? FULL_SECONDS.find((n) => n >= value) : undefined;
  if (full !== undefined) return full;
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
}

/** Return the times at which the axis is labelled: full hours, six of them or days. */
function ticks(since, until) {
  const step = [1, 2, 6, 24, 24 * 5].map((hours) => hours * 3_600_000).find((ms) => (until - since) / ms <= 8) ?? 24 * 5 * 3_600_000;
  const times = [];
  for (let at = Math.ceil(since / step) * step; at <= until; at += step) times.push(at);
  return { times, days: step >= 24 * 3_600_000 };
}

function LagPlot({ data, member }) {
  const since = Date.parse(data.since);
  const until = Date.parse(data.until);
  const points = data.points.map((p) => ({ at: Date.parse(p.seen_at), value: p[member] }));
  const known = points.filter((p) => p.value !== null);
  if (known.length === 0) return h(Note, null, "Nobody recorded the lag in this time: lag sensors and syncs do.");
  const inner = { width: PLOT.width - PLOT.left - PLOT.right, height: PLOT.height - PLOT.top - PLOT.bottom };
  const top = roundUp(Math.max(...known.map((p) => p.value)), member);
  const x = (at) => PLOT.left + (inner.width * (at - since)) / (until - since);
  const y = (value) => PLOT.top + inner.height * (1 - Math.max(value, 0) / top);
  const spell = member === "seconds" ? duration : number;
  const { times, days } = ticks(since, until);
  const label = (at) => new Date(at).toISOString().slice(...(days ? [5, 10] : [11, 16]));
  // An unknown lag interrupts the line: nobody knows what it was.
  const runs = points.reduce((all, p) => (p.value === null ? [...all, []] : [...all.slice(0, -1), [...all.at(-1), p]]), [[]]).filter((r) => r.length);
  const line = (run) => run.map((p, n) => `${n ? "L" : "M"}${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
  const worst = known.reduce((a, b) => (b.value > a.value ? b : a));
  const last = points.at(-1);
  const sum = `Lag in ${member} from ${data.since} to ${data.until}: at most ${spell(worst.value)}, last ${last.value === null ? "unknown" : spell(last.value)}`;
  return h("svg", { className: "cdc-plot", viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "img", "aria-label": sum },
    [0, 0.5, 1].map((part) => h("g", { key: part },
      h("line", { className: "cdc-grid", x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y(top * part), y2: y(top * part) }),
      h("text", { className: "cdc-tick", x: PLOT.left - 8, y: y(top * part) + 4, textAnchor: "end" }, spell(top * part)))),
    times.map((at) => h("text", { key: at, className: "cdc-tick", x: x(at), y: PLOT.height - 8, textAnchor: "middle" }, label(at))),
    runs.map((run, n) => h("path", { key: `a${n}`, className: "cdc-area", d: `${line(run)}L${x(run.at(-1).at).toFixed(1)} ${y(0)}L${x(run[0].at).toFixed(1)} ${y(0)}Z` })),
    runs.map((run, n) => h("path", { key: n, className: "cdc-line", d: line(run) })),
    points.map((p) => p.value !== null && h("circle", { key: p.at, className: runs.some((run) => run.length === 1 && run[0] === p) ? "cdc-point-alone" : "cdc-point", cx: x(p.at), cy: y(p.value), r: 3 },
      h("title", null, `${new Date(p.at).toISOString().slice(0, 19)}Z: ${spell(p.value)}`))));
}

function LagSection({ ledger, name }) {
  const [span, setSpan] = useState("24 hours");
  const [member, setMember] = useState("seconds");
  const [since, setSince] = useState(null);
  useEffect(() => {
    const begin = () => setSince(new Date(Date.now() - SPANS[span] * 3_600_000).toISOString());
    begin();
    const timer = setInterval(begin, 10 * REFRESH_MS);
    return () => clearInterval(timer);
  }, [span]);
  const answer = useAnswer(since && pipelinePath(ledger, name, "/lag", { since }));
  const choice = (all, value, set) => all.map((one) => h(Button, { key: one, pressed: one === value, onClick: () => set(one) }, one));
  const tools = h(Fragment, null, choice(["seconds", "records"], member, setMember), h("span", { className: "cdc-gap" }), choice(Object.keys(SPANS), span, setSpan));
  return h(Section, { title: "Lag behind the source (UTC)", tools }, h(Answered, { answer }, (data) => h(LagPlot, { data, member })));
}

// ---- tables

function TablesSection({ ledger, name, onTable, chosen }) {
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
      h("button", { type: "button", className: "cdc-link", onClick: () => onTable(t.id === chosen ? null : t.id) }, `${t.database}.${t.table}`),
      h(Fragment, null, h(State, { state: t.state }), t.held?.since && h("span", { className: "cdc-late", title: `since batch ${t.held.seq}` }, ` for ${t.held.at_least ? "at least " : ""}${age(t.held.since)}`)),
      h("span", { className: "cdc-reason" }, t.reason || t.notes.join("; ")),
      h(Fragment, null, h(Time, { at: t.source_time }), h(ReadSince, { records: t.held?.records, bound: t.held?.at_least })),
      h(Proof, { table: t }),
      number(t.columns), number(t.version), number(t.applied_seq),
      h("span", { className: "cdc-location" }, t.location),
    ],
  }));
  const head = [column("Table"), column("State"), column("Reason or note"), column("Applied up to (source time, UTC)"), column("Proved"), numbers("Columns"), numbers("Version"), numbers("Batch"), column("Location")];
  return h(Section, { title: "Tables", tools }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: view.search || view.state ? "No table matches." : "No table yet." }),
    h(Pager, { offset: view.offset, shown: data.tables.length, total: data.total, onMove: (offset) => setView({ ...view, offset }) }))));
}

function Proof({ table }) {
  const kinds = changesText(table.contradictions);
  const agreed = table.agreed_rows ? `${number(table.agreed_rows)} rows agreed` : "";
  return h("span", { title: agreed }, table.proved || "–", kinds && h("span", { className: "cdc-bad" }, ` ${kinds}`));
}

const COLUMN_CHANGES = {
  added: (c) => `+ ${c.column} ${c.after}`,
  dropped: (c) => `− ${c.column}`,
  renamed: (c) => `${c.before} → ${c.after}`,
  changed: (c) => `${c.column}: ${c.before} → ${c.after}`,
  key: (c) => `key (${c.before}) → (${c.after})`,
};

function HistorySection({ ledger, name, table, onClose }) {
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
  const head = [numbers("Batch"), column("Committed (UTC)"), column("Name"), column("State"), column("Reason"), column("Columns changed"), numbers("Columns")];
  return h(Section, { title: "History of the table", tools: h(Button, { onClick: onClose }, "Close") }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: "Nothing changed in the batches that were looked through." }),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}

// ---- batches, schema changes, quarantine

const changesText = (changes) => Object.entries(changes ?? {}).map(([op, count]) => `${number(count)} ${op}`).join(", ");

function BatchesSection({ ledger, name, seq }) {
  const [before, setBefore] = useState(seq === null ? null : seq + 1);
  const answer = useAnswer(pipelinePath(ledger, name, "/batches", { before }));
  const rows = (data) => data.batches.map((b) => ({
    key: b.seq,
    className: b.seq === seq ? "cdc-row-chosen" : undefined,
    cells: [
      number(b.seq), h(State, { state: b.status ?? b.batch_status }), h(Time, { at: b.until }), h(Time, { at: b.committed_at ?? b.started_at ?? b.planned_at }),
      number(b.records ?? b.offsets), changesText(b.changes), number(b.schema_changes), number(b.tables),
      b.quarantined ? h("strong", { className: "cdc-bad" }, number(b.quarantined)) : number(b.quarantined),
      b.progress ? b.progress.text : b.seconds === null ? "–" : duration(b.seconds), h("span", { title: b.application_id ?? undefined }, b.engine ?? "–"), h(RunLink, { run: b.run }),
      h("span", { className: "cdc-code", title: b.warnings?.join("\n") }, b.code ?? (b.warnings ? "catalog" : "")),
    ],
  }));
  const head = [numbers("Batch"), column("Result"), column("Until (UTC)"), column("At (UTC)"), numbers("Records"), column("Changes"), numbers("DDL"), numbers("Tables"),
    numbers("Quarantined"), column("Took"), column("Engine"), column("Run"), column("Code")];
  return h(Section, { title: "Batches" }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: "No batch." }),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}

function SchemaSection({ ledger, name }) {
  const [before, setBefore] = useState(null);
  const answer = useAnswer(pipelinePath(ledger, name, "/schema-changes", { before }));
  const rows = (data) => data.schema_changes.map((c) => ({
    key: c.number,
    cells: [number(c.seq), h(Time, { at: c.source_time }), c.database,
      h("span", { className: "cdc-code" }, c.statement || `records describe ${c.describes.join(", ")}`), c.snapshot ? "snapshot" : ""],
  }));
  const head = [numbers("Batch"), column("Source time (UTC)"), column("Database"), column("Statement, without its values"), column("")];
  return h(Section, { title: "Schema changes" }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: "No schema change." }),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}

function QuarantineSection({ ledger, name }) {
  const [before, setBefore] = useState(null);
  const answer = useAnswer(pipelinePath(ledger, name, "/quarantine", { before }));
  const rows = (data) => data.batches.flatMap((b) => [
    ...b.records.map((r, n) => ({
      key: `${b.seq} ${n}`,
      cells: [number(b.seq), r.topic ?? "–", number(r.partition), number(r.offset), r.table ? `${r.database}.${r.table}` : "–", r.column ?? "", h("span", { className: "cdc-code" }, r.code)],
    })),
    ...(b.quarantined > b.records.length
      ? [{ key: `${b.seq} more`, cells: [number(b.seq), `and ${plural(b.quarantined - b.records.length, "more record")}`, "", "", "", "", ""] }]
      : []),
  ]);
  const head = [numbers("Batch"), column("Topic"), numbers("Partition"), numbers("Offset"), column("Table"), column("Column"), column("Code or reason")];
  return h(Section, { title: "Quarantine" }, h(Answered, { answer }, (data) => h(Fragment, null,
    h(Table, { head, rows: rows(data), empty: data.before ? "Nothing in the batches that were looked through." : "Nothing is in quarantine." }),
    h(Older, { before: data.before, atNewest: before === null, onMove: setBefore }))));
}

// ---- one pipeline

function Facts({ pipeline }) {
  const { batch, cut, lag, tables } = pipeline;
  const facts = [
    ["State", h(PipelineState, { pipeline })],
    pipeline.attempt && ["Last attempt failed", h(Attempt, { attempt: pipeline.attempt })],
    ["Lag", h(Lag, { lag, since: pipeline.unsettled_since })],
    pipeline.unsettled_since && ["Not applied since (UTC)",
      h(Fragment, null, h(Time, { at: pipeline.unsettled_since }), h(ReadSince, { records: pipeline.unsettled_records }))],
    ["Cut (source time, UTC)", h(Time, { at: cut?.source_time })],
    ["Position", h("span", { className: "cdc-code" }, cut?.position ?? "–")],
    ["All tables at the cut", cut ? (cut.consistent ? "yes" : "no") : "–"],
    ["Tables", `${number(tables.parked)} parked, ${number(tables.waiting)} waiting, ${number(tables.ok)} ok`],
    ["Last batch", batch ? h(Fragment, null, `${number(batch.seq)} (${batch.outcome ?? batch.status}), `, h(Time, { at: batch.committed_at ?? batch.planned_at })) : "–"],
    ["Last run", h(RunLink, { run: batch?.run })],
    batch?.holder && ["Leased by", `${batch.holder.owner} until ${batch.holder.until}`],
  ].filter(Boolean);
  return h("dl", { className: "cdc-facts" }, facts.map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))));
}

function PipelinePage({ ledger: asked, name, seq }) {
  const [table, setTable] = useState(null);
  const answer = useAnswer(pipelinePath(asked, name, ""));
  return h(Fragment, null,
    h("nav", { className: "cdc-path" }, h(Link, { to: { search: "" } }, "All pipelines")),
    h("h1", null, name),
    h(Answered, { answer }, ({ pipeline, ledger: { name: ledger } }) => h(Fragment, null,
      h(Facts, { pipeline }),
      h(LagSection, { ledger, name }),
      h(TablesSection, { ledger, name, chosen: table, onTable: setTable }),
      table !== null && h(HistorySection, { key: table, ledger, name, table, onClose: () => setTable(null) }),
      h(BatchesSection, { ledger, name, seq }),
      h(SchemaSection, { ledger, name }),
      h(QuarantineSection, { ledger, name }))));
}

function CdcPage() {
  const [parameters] = useSearchParams();
  const name = parameters.get("pipeline");
  const seq = Number.parseInt(parameters.get("seq"), 10);
  useEffect(() => {
    // A link element, not a style element: it needs no exception in a content security policy.
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL("page.css", import.meta.url).href;
    document.head.append(link);
    return () => link.remove();
  }, []);
  return h("main", { className: "cdc" },
    name === null
      ? h(Fragment, null, h("h1", null, "CDC pipelines"), h(PipelineList))
      : h(PipelinePage, { key: name, name, ledger: parameters.get("ledger"), seq: Number.isNaN(seq) ? null : seq }));
}

globalThis["CDC pipelines"] = CdcPage;
