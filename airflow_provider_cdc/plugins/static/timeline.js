// SPDX-License-Identifier: Apache-2.0
// One time axis: the lag, and below it what happened to the pipeline.

import { Fragment, Link, h, useEffect, useState } from "./react.js";
import { REFRESH_MS, pipelinePath, query, server, useAnswer } from "./data.js";
import { Answered, Button, Note, Section, dagPath, runPath } from "./parts.js";
import { clock, duration, number, plural, zone } from "./texts.js";

const SPANS = { "6 hours": 6, "24 hours": 24, "7 days": 24 * 7, "30 days": 24 * 30 };
const PLOT = { width: 1200, left: 92, right: 12, top: 12, lag: 150, lane: 24, bottom: 26 };
const MOST_RUNS = 100;

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

/** Draw a shape around a point: each kind has one of its own, so that nothing is shown by colour alone. */
const SHAPES = {
  square: (x, y) => `M${x - 4} ${y - 4}h8v8h-8z`,
  diamond: (x, y) => `M${x} ${y - 6}l6 6l-6 6l-6 -6z`,
  circle: (x, y) => `M${x - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`,
  cross: (x, y) => `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10`,
  triangle: (x, y) => `M${x} ${y - 5}l6 10h-12z`,
  tick: (x, y) => `M${x} ${y - 6}v12`,
  check: (x, y) => `M${x - 5} ${y}l4 4l7 -8`,
};

function Mark({ x, y, shape, kind, says, to }) {
  const drawn = h("path", { className: `cdc-mark cdc-mark-${kind} cdc-shape-${shape}`, d: SHAPES[shape](x, y) }, h("title", null, says));
  return to ? h(Link, { to, "aria-label": says }, drawn) : drawn;
}

const BATCHES = { done: ["square", "good"], committed: ["square", "good"], empty: ["circle", "calm"], parked: ["triangle", "bad"], waiting: ["triangle", "late"], running: ["circle", "open"] };
const DDL = { mapping: ["circle", "good"], barrier: ["diamond", "late"], destructive: ["cross", "bad"], unknown: ["triangle", "bad"] };
const RUNS = { success: ["tick", "calm"], failed: ["cross", "bad"], running: ["circle", "open"], queued: ["circle", "calm"] };

/** Return the lanes below the lag: what stands in each, and at what time. */
function lanes(data, runs, name, ledger) {
  const word = (b) => b.outcome ?? (b.status === "planned" ? "running" : b.status);
  const marks = (items, shapes, of) => items.map((item) => {
    const { at, key, state, ...more } = of(item);
    const [shape, kind] = shapes[state] ?? ["cross", "bad"];
    return { at: Date.parse(at) || at / 1000, key, shape, kind, ...more };
  });
  return [
    ["Runs", marks(runs, RUNS, (r) => ({ at: r.run_after, key: r.dag_run_id, state: r.state, says: `run ${r.dag_run_id}: ${r.state}, due ${clock(r.run_after)}`, to: `${dagPath(r.dag_id)}/runs/${encodeURIComponent(r.dag_run_id)}` }))],
    ["Batches", marks(data.batches, BATCHES, (b) => ({ at: b.committed_at ?? b.planned_at, key: b.seq, state: word(b), says: `batch ${b.seq} ${word(b)} ${clock(b.committed_at ?? b.planned_at)}${b.records === null ? "" : `, ${plural(b.records, "record")}`}${b.seconds === null ? "" : `, took ${duration(b.seconds)}`}`, to: b.run ? runPath(b.run) : { search: `?${query({ pipeline: name, ledger, seq: b.seq })}` } }))],
    ["DDL", marks(data.schema_changes, DDL, (c) => ({ at: c.source_time, key: c.number, state: c.kind ?? "mapping", says: `${c.kind ?? "described"} ${clock(c.source_time)}: ${c.statement || c.describes.join(", ")}` }))],
    ["Decisions", marks(data.decisions, { apply: ["check", "good"], deny: ["cross", "late"] }, (d) => ({ at: d.at, key: `${d.seq} ${d.table} ${d.policy}`, state: d.answer, says: `${d.answer} ${d.policy} of ${d.table}, by ${d.by}, ${clock(d.at)}` }))],
  ].filter(([, found]) => found.length > 0);
}

/** Return the points in runs: an unknown lag, and a time in which nobody looked, interrupt the line. */
function unbroken(points) {
  const distances = points.slice(1).map((p, n) => p.at - points[n].at).sort((a, b) => a - b);
  const longest = 2.5 * (distances[Math.floor(distances.length / 2)] ?? 0);
  const runs = [[]];
  points.forEach((p, n) => {
    if (p.value === null || (n > 0 && p.at - points[n - 1].at > longest)) runs.push([]);
    if (p.value !== null) runs.at(-1).push(p);
  });
  return runs.filter((run) => run.length);
}

function Plot({ data, member, runs, name, ledger }) {
  const since = Date.parse(data.since);
  const until = Date.parse(data.until);
  const points = data.points.map((p) => ({ at: Date.parse(p.seen_at), value: p[member] }));
  const known = points.filter((p) => p.value !== null);
  const rows = lanes(data, runs, name, ledger);
  const stopped = data.stopped.filter((s) => s.since !== null);
  if (known.length + rows.length + stopped.length === 0) return h(Note, null, "Nothing was recorded in this time: lag sensors and syncs record the lag.");
  const width = PLOT.width - PLOT.left - PLOT.right;
  const bottom = known.length ? PLOT.top + PLOT.lag : PLOT.lane;
  const height = bottom + 10 + (rows.length + (stopped.length > 0)) * PLOT.lane + PLOT.bottom;
  const bound = member === "seconds" ? data.bound_seconds : null;
  const top = roundUp(Math.max(1, ...known.map((p) => p.value)), member);
  const x = (at) => PLOT.left + width * Math.min(1, Math.max(0, (at - since) / (until - since)));
  const y = (value) => PLOT.top + PLOT.lag * (1 - Math.max(value, 0) / top);
  const spell = member === "seconds" ? duration : number;
  const { times, days } = ticks(since, until);
  const label = (at) => clock(at).slice(...(days ? [5, 10] : [11, 16]));
  const lines = unbroken(points);
  const line = (run) => run.map((p, n) => `${n ? "L" : "M"}${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}`).join("");
  const worst = Math.max(...known.map((p) => p.value));
  const last = points.at(-1)?.value;
  const sum = `Lag in ${member} from ${data.since} to ${data.until}: ${known.length ? `at most ${spell(worst)}, last ${last === null ? "unknown" : spell(last)}` : "unknown"}`;
  const text = (at, line, anchor, shown, key) => h("text", { key, className: "cdc-tick", x: at, y: line, textAnchor: anchor }, shown);
  const lane = (n) => bottom + 10 + PLOT.lane * (n + 0.5);
  return h("svg", { className: "cdc-plot", viewBox: `0 0 ${PLOT.width} ${height}`, role: "group", "aria-label": sum },
    known.length === 0 && text(PLOT.left, PLOT.lane - 6, "start", "Nobody recorded the lag in this time: lag sensors and syncs do."),
    known.length > 0 && [0, 0.5, 1].map((part) => h(Fragment, { key: part },
      h("line", { className: "cdc-grid", x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y(top * part), y2: y(top * part) }),
      text(PLOT.left - 8, y(top * part) + 4, "end", spell(top * part)))),
    times.map((at) => h("line", { key: at, className: "cdc-grid", x1: x(at), x2: x(at), y1: bottom, y2: height - PLOT.bottom })),
    times.map((at) => text(x(at), height - 8, "middle", label(at), at)),
    known.length > 0 && bound !== null && bound <= top && h(Fragment, null,
      h("line", { className: "cdc-bound", x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y(bound), y2: y(bound) }),
      text(PLOT.width - PLOT.right, y(bound) - 4, "end", `late from ${duration(bound)} on`)),
    lines.map((run, n) => h("path", { key: `a${n}`, className: "cdc-area", d: `${line(run)}L${x(run.at(-1).at).toFixed(1)} ${y(0)}L${x(run[0].at).toFixed(1)} ${y(0)}Z` })),
    lines.map((run, n) => h("path", { key: n, className: "cdc-line", d: line(run) })),
    points.map((p) => p.value !== null && h("circle", { key: p.at, className: lines.some((run) => run.length === 1 && run[0] === p) ? "cdc-point-alone" : "cdc-point", cx: x(p.at), cy: y(p.value), r: 3 },
      h("title", null, `${clock(p.at)}: ${spell(p.value)}`))),
    rows.map(([title, marks], n) => h("g", { key: title, role: "list", "aria-label": title },
      text(PLOT.left - 8, lane(n) + 4, "end", title),
      marks.filter((m) => m.at >= since && m.at <= until).map((m) => h(Mark, { ...m, x: x(m.at), y: lane(n), key: m.key })))),
    stopped.length > 0 && h("g", { role: "list", "aria-label": "Stopped tables" },
      text(PLOT.left - 8, lane(rows.length) + 4, "end", "Stopped"),
      stopped.map((s, n) => h("path", { key: s.table, className: `cdc-mark cdc-span-${s.state}`, d: `M${x(Date.parse(s.since))} ${lane(rows.length) - 6 + (n * 12) / stopped.length}H${PLOT.width - PLOT.right}v${Math.max(12 / stopped.length - 1, 1)}H${x(Date.parse(s.since))}z` },
        h("title", null, `${s.table} ${s.state} since ${clock(s.since)}`)))));
}

const KEY = [["square", "good", "batch done"], ["circle", "calm", "empty"], ["triangle", "bad", "with parked tables"], ["cross", "bad", "failed, killed or destructive"], ["circle", "good", "DDL: mapping"], ["diamond", "late", "DDL: barrier"], ["check", "good", "approved"], ["tick", "calm", "run of the DAG"]];

function Key() {
  return h("ul", { className: "cdc-key" }, KEY.map(([shape, kind, says]) => h("li", { key: says },
    h("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { className: `cdc-mark cdc-mark-${kind} cdc-shape-${shape}`, d: SHAPES[shape](8, 8) })), says)));
}

export function TimelineSection({ ledger, name, dag }) {
  const [span, setSpan] = useState("24 hours");
  const [member, setMember] = useState("seconds");
  const [since, setSince] = useState(null);
  useEffect(() => {
    const begin = () => setSince(new Date(Date.now() - SPANS[span] * 3_600_000).toISOString());
    begin();
    const timer = setInterval(begin, 10 * REFRESH_MS);
    return () => clearInterval(timer);
  }, [span]);
  const answer = useAnswer(since && pipelinePath(ledger, name, "/timeline", { since }));
  // Airflow's own interface: it shows what the user may see, and where it shows nothing the lane is left out.
  const runs = useAnswer(since && dag && server(`api/v2${dagPath(dag)}/dagRuns?${query({ run_after_gte: since, order_by: "-run_after", limit: MOST_RUNS })}`));
  const choice = (all, value, set) => all.map((one) => h(Button, { key: one, pressed: one === value, onClick: () => set(one) }, one));
  const tools = h(Fragment, null, choice(["seconds", "records"], member, setMember), h("span", { className: "cdc-gap" }), choice(Object.keys(SPANS), span, setSpan));
  return h(Section, { title: `Lag and events (${zone()})`, tools }, h(Answered, { answer }, (data) => h(Fragment, null,
    h("div", { className: "cdc-wide" }, h(Plot, { data, member, runs: runs.data?.dag_runs ?? [], name, ledger })),
    h(Key),
    data.more_batches && h(Note, null, "Only the newest 300 batches of this time are drawn."))));
}
