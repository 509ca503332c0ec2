// SPDX-License-Identifier: Apache-2.0
// Parts that every list of the page is made of.

import { Fragment, Link, h, useEffect, useState } from "./react.js";
import { PAGE, query } from "./data.js";
import { ago, clock, moment, number, zone } from "./texts.js";

/** Show a time as ISO text, to the second, with its age as tooltip. */
export function Time({ at }) {
  if (at === null || at === undefined) return h("span", { className: "cdc-muted" }, "–");
  if (Number.isNaN(moment(at).getTime())) return h("span", null, String(at));
  return h("time", { dateTime: moment(at).toISOString(), title: `${ago(at)} (${zone()})` }, clock(at));
}

/** Show how long ago a time is, with the time as tooltip. */
export function Ago({ at, say = ago }) {
  if (at === null || at === undefined) return h("span", { className: "cdc-muted" }, "–");
  return h("time", { dateTime: moment(at).toISOString(), title: `${clock(at)} ${zone()}` }, say(at));
}

// A sign for each group of states: nothing is shown by colour alone.
const SIGNS = {
  failing: "✕", refused: "✕", crashed: "✕", failed: "✕", abandoned: "✕",
  parked: "■", waiting: "◷", stale: "△", interrupted: "△", late: "△",
  new: "○", planned: "○", running: "▸", ok: "✓", done: "✓", committed: "✓", empty: "✓", dropped: "–",
};
export const signOf = (state) => SIGNS[state] ?? "·";

export function State({ state }) {
  return h("span", { className: `cdc-state cdc-state-${state}` }, h("span", { "aria-hidden": "true" }, `${signOf(state)} `), state);
}

export function Note({ kind = "plain", children }) {
  return h("p", { className: `cdc-note cdc-note-${kind}`, role: kind === "bad" ? "alert" : undefined }, children);
}

export const muted = (...children) => h("span", { className: "cdc-muted" }, ...children);
export const code = (...children) => h("span", { className: "cdc-code" }, ...children);

/** Show rows as a table, and as cards where it is narrow: each cell knows the name of its column. */
export function Table({ head, rows, empty }) {
  if (rows.length === 0) return h(Note, null, empty);
  const cells = (row) => row.cells.map((cell, n) => h("td", { key: n, className: head[n].number && "cdc-number", "data-label": head[n].text }, h("div", null, cell)));
  return h("div", { className: "cdc-scroll" },
    h("table", null,
      h("thead", null, h("tr", null, head.map((c, n) => h("th", { key: n, scope: "col", className: c.number && "cdc-number" }, c.text)))),
      h("tbody", null, rows.map((row) => h("tr", { key: row.key, className: row.className }, cells(row))))));
}

export const column = (text) => ({ text });
export const numbers = (text) => ({ text, number: true });

export function Button({ onClick, disabled, pressed, children }) {
  return h("button", { type: "button", onClick, disabled, "aria-pressed": pressed }, children);
}

/** Offer a text to copy: it is marked, and copied where the browser lets the page do it. */
export function Copy({ text }) {
  const [done, setDone] = useState(false);
  const copy = (event) => {
    const shown = event.currentTarget.parentElement.querySelector("pre");
    globalThis.getSelection?.().selectAllChildren(shown);
    (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => setDone(true), () => setDone(document.execCommand("copy")));
  };
  return h("div", { className: "cdc-copy" },
    h("pre", { className: "cdc-code", tabIndex: 0 }, text),
    h("button", { type: "button", onClick: copy, "aria-live": "polite" }, done ? "Copied" : "Copy"));
}

export function Section({ title, tools, children }) {
  return h("section", { className: "cdc-section", "aria-label": title },
    h("header", null, h("h2", null, title), h("div", { className: "cdc-tools" }, tools)), children);
}

export function Pager({ offset, shown, total, onMove }) {
  if (total <= PAGE) return null;
  return h("div", { className: "cdc-pager" },
    h(Button, { onClick: () => onMove(Math.max(0, offset - PAGE)), disabled: offset === 0 }, "Previous"),
    h("span", null, `${number(offset + 1)} to ${number(offset + shown)} of ${number(total)}`),
    h(Button, { onClick: () => onMove(offset + PAGE), disabled: offset + shown >= total }, "Next"));
}

/** Offer the older entries of a list that is read backwards. */
export function Older({ before, atNewest, onMove }) {
  if ((before === null || before === undefined) && atNewest) return null;
  return h("div", { className: "cdc-pager" },
    h(Button, { onClick: () => onMove(null), disabled: atNewest }, "Newest"),
    h(Button, { onClick: () => onMove(before), disabled: before === null || before === undefined }, "Older"));
}

export function Search({ value, onChange, label }) {
  const [text, setText] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => text !== value && onChange(text), 300);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return h("input", { type: "search", value: text, placeholder: label, "aria-label": label, maxLength: 200,
    onChange: (event) => setText(event.target.value) });
}

export const dagPath = (dag) => `/dags/${encodeURIComponent(dag)}`;

/** Return the address of a task's log, of the try that worked; the task's first tab shows it. */
export function runPath(run) {
  const part = encodeURIComponent;
  const mapped = run.map_index >= 0 ? `/mapped/${run.map_index}` : "";
  return `${dagPath(run.dag_id)}/runs/${part(run.run_id)}/tasks/${part(run.task_id)}${mapped}?${query({ try_number: run.try_number })}`;
}

export function RunLink({ run, children }) {
  if (!run) return muted("–");
  return h(Link, { to: runPath(run), title: `${run.dag_id} / ${run.run_id} / ${run.task_id}, try ${run.try_number}` }, children ?? run.run_id);
}

const LEDGER_STATES = {
  "ledger.version": "Another release of the provider made the ledger's tables. Install that release here, or let pipelines and page name an empty database: the next run takes over what the lake knows.",
};

/** Say why a ledger cannot be read, or show what was read from it. */
export function Answered({ answer, missing = null, children }) {
  if (answer.error) return h(Note, { kind: "bad" }, answer.error);
  if (!answer.data) return h(Note, null, "Loading …");
  const { ledger } = answer.data;
  if (!ledger || ledger.state === "ok") return children(answer.data);
  if (ledger.state === "missing") return missing ?? h(Note, null, "There is no ledger yet: the first batch creates it.");
  const general =
    ledger.state === "unreachable"
      ? "The ledger is not reachable from the api-server."
      : "The ledger cannot be used from the api-server.";
  const detail = LEDGER_STATES[ledger.code] ?? `${general} The log of the api-server says why.`;
  return h(Note, { kind: "bad" }, `${detail} [${ledger.code}]`);
}

export { Fragment };
