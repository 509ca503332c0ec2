// SPDX-License-Identifier: Apache-2.0
// The page of one pipeline.

import { Fragment, Link, h, useState } from "./react.js";
import { pipelinePath, useAnswer } from "./data.js";
import { Ago, Answered, Copy, RunLink, Time, code } from "./parts.js";
import { Attempt, DagLink, Lag, NextRun, PipelineState } from "./pipeline_parts.js";
import { BatchesSection, QuarantineSection, SchemaSection } from "./events.js";
import { HistorySection, ReadSince, TablesSection } from "./tables.js";
import { NeedsSection } from "./needs.js";
import { TimelineSection } from "./timeline.js";
import { number, plural, zone } from "./texts.js";

/** The page's place in Airflow's UI; its tabs have others. */
export const HOME = "/plugin/cdc";

function Facts({ pipeline, dag }) {
  const { batch, lag, tables } = pipeline;
  const facts = [
    ["State", h(PipelineState, { pipeline })],
    pipeline.attempt && ["Last attempt failed", h(Attempt, { attempt: pipeline.attempt })],
    ["Lag", h(Lag, { lag, since: pipeline.unsettled_since })],
    pipeline.unsettled_since && [`Not applied since (${zone()})`,
      h(Fragment, null, h(Time, { at: pipeline.unsettled_since }), h(ReadSince, { records: pipeline.unsettled_records }))],
    ["Tables", `${number(tables.parked)} parked, ${number(tables.waiting)} waiting, ${number(tables.ok)} ok`],
    ["Last batch", batch ? h(Fragment, null, `${number(batch.seq)} (${batch.outcome ?? batch.status}), `, h(Ago, { at: batch.committed_at ?? batch.planned_at })) : "–"],
    ["Last run", h(RunLink, { run: batch?.run })],
    ["Next run", h(NextRun, { dag })],
    ["DAG", h(DagLink, { id: pipeline.dag })],
    batch?.holder && ["Leased by", `${batch.holder.owner} until ${batch.holder.until}`],
  ].filter(Boolean);
  return h("dl", { className: "cdc-facts" }, facts.map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))));
}

/** Say at which time all tables equal the source, or what speaks against it, and how to read them as they were. */
function Equality({ ledger, name }) {
  const answer = useAnswer(pipelinePath(ledger, name, "/equality"));
  return h(Answered, { answer }, ({ equality: e }) => {
    if (!e) return null;
    const against = [
      e.unsettled && `${plural(e.unsettled, "table")} parked or waiting`,
      e.contradictions && `${plural(e.contradictions, "change")} did not find what the log says`,
      e.quarantined && `${plural(e.quarantined, "record")} left out, last by batch ${e.quarantined_seq}; which of them were replayed since, the ledger does not know`,
    ].filter(Boolean);
    const time = h(Fragment, null, h(Time, { at: e.source_time }), ` ${zone()}`);
    return h("div", { className: "cdc-equal" },
      against.length === 0
        ? h(Fragment, null, h("span", { "aria-hidden": "true" }, "✓ "), e.tables === 1 ? "The one table equals the source at " : `All ${plural(e.tables, "table")} equal the source at `, time)
        : h(Fragment, null, h("span", { "aria-hidden": "true" }, "△ "), "Applied up to ", time, `. Not all tables need equal the source then: ${against.join("; ")}.`),
      e.position && h("details", null, h("summary", null, "position"), code(e.position)),
      e.reads.length > 0 && h("details", null, h("summary", null, "read all tables at this time"), h(Copy, { text: e.reads.join("\n") })));
  });
}

export function PipelinePage({ ledger: asked, name, seq }) {
  const [table, setTable] = useState(null);
  const answer = useAnswer(pipelinePath(asked, name, ""));
  return h(Fragment, null,
    h("nav", { className: "cdc-path" }, h(Link, { to: HOME }, "All pipelines")),
    h("h1", null, name),
    h(Answered, { answer }, ({ pipeline, dags, ledger: { name: ledger } }) => h(Fragment, null,
      h(Facts, { pipeline, dag: dags?.[pipeline.dag] }),
      h(Equality, { ledger, name }),
      h(NeedsSection, { ledger, name }),
      h(TimelineSection, { ledger, name, dag: pipeline.dag }),
      h(TablesSection, { ledger, name, chosen: table, onTable: setTable }),
      table !== null && h(HistorySection, { key: table, ledger, name, table, onClose: () => setTable(null) }),
      h(BatchesSection, { ledger, name, seq }),
      h(SchemaSection, { ledger, name }),
      h(QuarantineSection, { ledger, name }))));
}
