// SPDX-License-Identifier: Apache-2.0
// The list of pipelines: what needs a person first.

import { Fragment, Link, h, useCallback, useState } from "./react.js";
import { PAGE, api, query, useAnswer } from "./data.js";
import { Ago, Answered, Note, Pager, RunLink, Search, Section, Table, code, column, muted, signOf } from "./parts.js";
import { Attempt, DagLink, Lag, NextRun, PipelineState } from "./pipeline_parts.js";
import { HOME, PipelinePage } from "./pipeline.js";
import { clock, duration, number, plural, zone } from "./texts.js";

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
  const shown = (text) => h("code", { className: "cdc-code" }, text);
  return h("div", { className: "cdc-welcome" }, h("h2", null, title), children,
    h("ol", null,
      h("li", null, "Describe where the changes are and where the tables are to be, as ", shown("shop.yaml"), ":", h("pre", { className: "cdc-code" }, FIRST_PIPELINE)),
      h("li", null, shown("airflow-cdc doctor shop.yaml"), " looks at broker, ledger and lake, and says what is missing."),
      h("li", null, shown("airflow-cdc sync shop.yaml"), " runs the first batch. In a DAG it is ", shown(FIRST_TASK), ".")),
    h("p", null, "The page Quick start of the documentation has each step."));
}

const NO_LEDGER = h(Welcome, { title: "There is no ledger yet: the first batch creates it" },
  h("p", null, "Have batches run already? Then the api-server looks elsewhere than they do: compare page_ledgers in the section [cdc] with the ledger of the pipelines, and of a file AIRFLOW_HOME and the mounted folders."));

const NOT_OF_THIS_DAG = h(Note, null, "No pipeline has run in this DAG. ", h(Link, { to: HOME }, "All pipelines"));

/** Count the pipelines by group of states; each count is a filter. */
function Strip({ counts, group, ledger, at }) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const filter = (name, text) => h(Link, {
    key: text, to: { search: `?${query({ group: name, ledger: name && ledger })}` }, "aria-current": name === group ? "true" : undefined,
    className: `cdc-filter cdc-state-${name ?? "all"}`,
  }, text);
  const shown = Object.entries(counts).filter(([name, count]) => count > 0 || name === group);
  return h("nav", { className: "cdc-strip", "aria-label": "Pipelines by state" },
    shown.map(([name, count]) => filter(name, `${signOf(name)} ${number(count)} ${name}`)),
    filter(null, `all ${number(all)}`), muted(`as of ${clock(at).slice(11)} ${zone()}`));
}

const SPARK = { width: 104, height: 22 };

/** Draw the highest lag of each of the last hours; an hour in which nobody looked is grey. */
function Sparkline({ lags, bound }) {
  if (!lags || lags.every((value) => value === null)) return null;
  const step = SPARK.width / lags.length;
  const top = Math.max(...lags.filter((value) => value !== null), 1);
  const y = (value) => (1 - Math.max(value, 0) / top) * (SPARK.height - 2) + 1;
  const unknown = lags.filter((value) => value === null).length;
  const most = Math.max(...lags.filter((value) => value !== null));
  const says = `Lag of the last 24 hours: at most ${duration(most)}${unknown ? `; in ${plural(unknown, "hour")} nobody looked` : ""}; late from ${duration(bound)} on`;
  return h("svg", { className: "cdc-spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, role: "img", "aria-label": says },
    h("title", null, says),
    lags.map((value, n) => (value === null
      ? h("rect", { key: n, className: "cdc-unknown", x: n * step, y: 0, width: step, height: SPARK.height })
      : h("rect", { key: n, className: value > bound ? "cdc-bar-late" : "cdc-bar", x: n * step + 0.5, y: y(value), width: step - 1, height: SPARK.height - y(value) }))),
    bound < top && h("line", { className: "cdc-bound", x1: 0, x2: SPARK.width, y1: y(bound), y2: y(bound) }));
}

const tablesText = (tables) => ["parked", "waiting", "ok"].filter((state) => tables[state]).map((state) => `${signOf(state)} ${number(tables[state])} ${state}`).join(", ");

function LastBatch({ batch }) {
  const at = h(Ago, { at: batch.committed_at ?? batch.planned_at });
  return h(Fragment, null, `${number(batch.seq)} `, muted(batch.outcome ?? batch.status), " ", batch.run ? h(RunLink, { run: batch.run }, at) : at);
}

function row(p, ledger, dags) {
  const { batch, cut } = p;
  return {
    key: p.name,
    className: ["failing", "parked"].includes(p.group) ? "cdc-row-bad" : undefined,
    cells: [
      h(Fragment, null, h(Link, { to: { search: `?${query({ pipeline: p.name, ledger })}` } }, p.name)),
      h(Fragment, null, h(PipelineState, { pipeline: p }), p.attempt && h(Attempt, { attempt: p.attempt })),
      h(Fragment, null, h(Lag, { lag: p.lag, since: p.unsettled_since }), h(Sparkline, { lags: p.lags, bound: p.bound_seconds })),
      tablesText(p.tables) || "–",
      h(Fragment, null, h(Ago, { at: cut?.source_time }), cut && !cut.consistent && muted(" not of all tables")),
      batch ? h(LastBatch, { batch }) : "–",
      h(NextRun, { dag: dags?.[p.dag] }),
      h(DagLink, { id: p.dag }),
    ],
  };
}

const HEAD = [column("Pipeline"), column("State"), column("Lag"), column("Tables"), column("Source time"), column("Last batch"), column("Next run"), column("DAG")];

/** Show pipelines of a ledger; in a tab those of its DAG and task, and where that is one, its page. */
function LedgerPipelines({ ledger, single, group, tab }) {
  const [search, setSearch] = useState("");
  const [at, setAt] = useState({ group, offset: 0 });
  const offset = at.group === group ? at.offset : 0;
  const answer = useAnswer(api(`pipelines?${query({ ledger, search, group, ...tab, offset, limit: PAGE })}`));
  const look = useCallback((text) => { setSearch(text); setAt({ group, offset: 0 }); }, [group]);
  const empty = search ? "No pipeline or DAG has such a name." : group ? `No pipeline is ${group}.` : "You may see no pipeline.";
  if (tab && answer.data?.pipelines && !search && !group) {
    if (single && answer.data.total === 1) return h(PipelinePage, { name: answer.data.pipelines[0].name, ledger, seq: null });
    if (answer.data.total === 0) return single ? NOT_OF_THIS_DAG : null;
  }
  const tools = h(Search, { value: search, onChange: look, label: "Pipeline or DAG" });
  return h(Section, { title: single ? "Pipelines" : `Ledger ${ledger}`, tools },
    h(Answered, { answer, missing: tab ? NOT_OF_THIS_DAG : NO_LEDGER }, (data) => h(Fragment, null,
      data.total + data.hidden === 0 && !search && !group
        ? h(Welcome, { title: "No pipeline has run yet" })
        : h(Fragment, null,
          h(Strip, { counts: data.counts, group, ledger, at: answer.at }),
          h(Table, { head: HEAD, rows: data.pipelines.map((p) => row(p, ledger, data.dags)), empty })),
      data.hidden > 0 && h(Note, null, `${plural(data.hidden, "pipeline")} not shown: you may not read the DAG, or this Airflow does not know it.`),
      h(Pager, { offset, shown: data.pipelines.length, total: data.total, onMove: (to) => setAt({ group, offset: to }) }))));
}

/** Show the pipelines of all ledgers; of one of them only a group of states, if that is asked for.
 *  In a tab of Airflow's own pages those of its DAG and task: { dag, task }. */
export function PipelineList({ group, of, tab }) {
  const answer = useAnswer(api("ledgers"));
  return h(Answered, { answer }, ({ ledgers }) =>
    ledgers.length === 0
      ? h(Note, null, "The option ", code("page_ledgers"), " of the section [cdc] names no ledger.")
      : ledgers.map((ledger) => h(LedgerPipelines, { key: ledger, ledger, single: ledgers.length === 1, group: of === ledger ? group : null, tab })));
}
