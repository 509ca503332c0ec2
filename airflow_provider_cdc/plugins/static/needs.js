// SPDX-License-Identifier: Apache-2.0
// What of one pipeline needs a person: what happened, since when, what it means, what to do. The page itself only reads.

import { Fragment, h } from "./react.js";
import { pipelinePath, useAnswer } from "./data.js";
import { Ago, Answered, Copy, Note, RunLink, Section, State, code } from "./parts.js";
import { age, number } from "./texts.js";

/** Name some of the tables that one entry is about. */
function Tables({ need }) {
  if (need.tables.length === 0) return null;
  const more = need.table_count - need.tables.length;
  return h("p", null, need.tables.map((name, n) => h(Fragment, { key: name }, n > 0 && ", ", code(name))), more > 0 && ` and ${number(more)} more`);
}

function Change({ change }) {
  return h("li", null, code(change.table), " waits for ", code(change.policy), ": ", code(change.statement), ` (change ${change.id}; ${change.deniable ? "it can be left out" : "it cannot be left out"})`);
}

function Need({ need }) {
  const calm = ["waiting", "late", "stale", "interrupted"].includes(need.state);
  return h("li", { className: `cdc-need ${calm ? "cdc-need-late" : "cdc-need-bad"}` },
    h("div", { className: "cdc-need-head" }, h(State, { state: need.state }),
      need.since && h("span", null, need.at_least ? " for at least " : " for ", h(Ago, { at: need.since, say: age })),
      need.code && h(Fragment, null, " ", code(need.code)),
      need.run && h(Fragment, null, " ", h(RunLink, { run: need.run }, `log of ${need.run.task_id}, try ${need.run.try_number}`))),
    h(Tables, { need }),
    h("dl", { className: "cdc-need-parts" },
      h("dt", null, "What happened"), h("dd", null, need.happened),
      need.changes?.length > 0 && h(Fragment, null, h("dt", null, "Asks"), h("dd", null, h("ul", null, need.changes.map((change) => h(Change, { key: change.id, change }))))),
      h("dt", null, "What it means"), h("dd", null, need.means),
      h("dt", null, "What to do"), h("dd", null, need.do, need.hint && h("p", null, "The error itself says: ", need.hint),
        // Each by itself: whoever copies the first, which only shows, does not carry out the second.
        need.commands.map((command) => h(Copy, { key: command, text: command })),
        need.operator && h("details", null, h("summary", null, "In a DAG"), h(Copy, { text: need.operator })))));
}

export function NeedsSection({ ledger, name }) {
  const answer = useAnswer(pipelinePath(ledger, name, "/needs"));
  return h(Section, { title: "Needs you" }, h(Answered, { answer }, ({ needs }) =>
    needs.length === 0
      ? h(Note, null, "Nothing needs a person.")
      : h("ul", { className: "cdc-needs" }, needs.map((need, n) => h(Need, { key: n, need })))));
}
