// SPDX-License-Identifier: Apache-2.0
// What the list and the page of one pipeline both show of it.

import { Fragment, Link, h } from "./react.js";
import { Ago, RunLink, State, code, dagPath, muted } from "./parts.js";
import { age, ago, duration, plural, until } from "./texts.js";

const NEW_MS = 120_000; // a figure that is younger shows no age

const STATES = {
  refused: "the batch is not committed, and the next run meets the same fault",
  crashed: "the batch is not committed, and the next run meets the same fault",
  failing: "the last attempt failed; no batch was committed since then",
  parked: "tables of it need a person",
  waiting: "tables of it wait for a schema change",
  interrupted: "a batch is begun and nobody works on it: the next run finishes it",
  stale: "nobody has run it for longer than twice the usual time",
  late: "it is further behind the source than twice the usual time between runs",
  running: "somebody works on a batch",
  new: "no batch was planned yet",
};

/** Show the state of a pipeline and since when, and of one that rests for how long. */
export function PipelineState({ pipeline }) {
  const { state, since } = pipeline;
  const usual = pipeline.usual_seconds === null ? "" : `; usually it runs every ${duration(pipeline.usual_seconds)}`;
  const rest = pipeline.rests && state !== "stale" ? ` not run for ${age(pipeline.ran_at)}` : "";
  const calm = ["ok", "new"].includes(state);
  return h("span", { title: STATES[state] && `${STATES[state]}${usual}` },
    h(State, { state }),
    since && !calm && h(Fragment, null, state === "stale" ? " not run for " : " for ", h(Ago, { at: since, say: age })),
    rest && h("span", { className: "cdc-late" }, rest));
}

/** Show the lag of now, with its age where it is not of the last minutes; an old one is unknown, and says when it was seen. */
export function Lag({ lag, since }) {
  const held = since ? h("span", { className: "cdc-late" }, `; tables not applied for ${age(since)}`) : null;
  return h(Fragment, null, h(Figure, { lag }), held);
}

function Figure({ lag }) {
  if (!lag) return h("span", { className: "cdc-muted", title: "no sensor or sync has recorded the lag" }, "unknown");
  const records = lag.records === null ? "" : `, ${plural(lag.records, "record")}`;
  const figure = `${duration(lag.seconds)}${records}`;
  const seen = ago(lag.seen_at);
  const usual = lag.usual_seconds === null ? "somebody looked once" : `somebody looks every ${duration(lag.usual_seconds)}`;
  if (!lag.present) return h("span", { className: "cdc-late", title: `then ${figure}; ${usual}` }, `unknown, last seen ${seen}`);
  const old = Date.now() - Date.parse(lag.seen_at) > NEW_MS;
  return h("span", { title: `seen ${seen}; ${usual}` }, figure, old && muted(` ${seen}`));
}

/** Say when and why the last attempt at a batch failed, with the way to its log. */
export function Attempt({ attempt }) {
  return h("span", { className: "cdc-attempt" }, " ", code(attempt.code), ` ${ago(attempt.at)} `,
    attempt.run && h(RunLink, { run: attempt.run }, `log of ${attempt.run.task_id}, ${attempt.run.run_id}`));
}

/** Say when a DAG runs next; one that is paused or gone does not. */
export function NextRun({ dag }) {
  if (!dag) return muted("–");
  const schedule = dag.schedule && h("span", { className: "cdc-muted cdc-unbroken" }, ` ${dag.schedule}`);
  if (dag.gone) return h("span", { className: "cdc-late" }, "the DAG is gone");
  if (dag.paused) return h("span", { className: "cdc-late" }, "the DAG is paused", schedule);
  return h("span", null, dag.next_run ? h(Ago, { at: dag.next_run, say: until }) : "not scheduled", schedule);
}

export function DagLink({ id }) {
  return id ? h(Link, { to: dagPath(id) }, id) : muted("no DAG");
}
