// SPDX-License-Identifier: Apache-2.0
// Render the page's script without a browser: a small React, answers from standard input, HTML to standard output.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [script] = process.argv.slice(2);
const { search, answers, tab, zone } = JSON.parse(readFileSync(0, "utf8"));

// ---- a React with the parts that the script uses

const Fragment = Symbol("Fragment");
const instances = new Map(); // path in the tree -> hooks of the component there
let hooks = null;
let at = 0;
let dirty = true;
let effects = [];

const hook = (make) => {
  if (hooks.length <= at) hooks.push(make());
  return hooks[at++];
};
const same = (before, now) => before && now && before.length === now.length && before.every((value, n) => Object.is(value, now[n]));

globalThis.React = {
  Fragment,
  createElement: (type, props, ...children) => ({ type, props: props ?? {}, children }),
  useState: (first) => {
    const mine = hook(() => ({ value: first }));
    mine.set ??= (next) => {
      const value = typeof next === "function" ? next(mine.value) : next;
      if (!Object.is(value, mine.value)) dirty = true;
      mine.value = value;
    };
    return [mine.value, mine.set];
  },
  useCallback: (work, inputs) => {
    const mine = hook(() => ({}));
    if (!same(mine.inputs, inputs)) Object.assign(mine, { work, inputs });
    return mine.work;
  },
  useEffect: (work, inputs) => {
    const mine = hook(() => ({}));
    if (same(mine.inputs, inputs)) return;
    mine.inputs = inputs;
    effects.push(work);
  },
};

const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function html(node, path) {
  if (node === null || node === undefined || node === false || node === true) return "";
  if (Array.isArray(node)) return node.map((child, n) => html(child, `${path}/${child?.props?.key ?? n}`)).join("");
  if (typeof node !== "object") return escape(node);
  const { type, props, children } = node;
  if (type === Fragment) return html(children, path);
  if (typeof type === "function") {
    const key = `${path}/${type.name}`;
    if (!instances.has(key)) instances.set(key, []);
    [hooks, at] = [instances.get(key), 0];
    return html(type({ ...props, children: children.length > 1 ? children : children[0] }), key);
  }
  const shown = Object.entries(props).filter(([name, value]) => name !== "key" && !["function", "undefined"].includes(typeof value) && value !== null && value !== false);
  const attributes = shown.map(([name, value]) => ` ${name}="${escape(typeof value === "object" ? JSON.stringify(value) : value)}"`).join("");
  return `<${type}${attributes}>${html(children, path)}</${type}>`;
}

// ---- what a browser has

const Link = ({ to, title, children }) => React.createElement("a", { to: typeof to === "string" ? to : to.search, title }, children);
globalThis.ReactRouterDOM = { Link, useSearchParams: () => [new URLSearchParams(search)] };
globalThis.document = {
  baseURI: "http://airflow/",
  title: "Airflow",
  visibilityState: "visible",
  createElement: () => ({ remove: () => {} }),
  head: { append: () => {} },
};
globalThis.localStorage = { getItem: (key) => (key === "timezone" && zone ? JSON.stringify(zone) : null) };
globalThis.setInterval = () => 0;
globalThis.setTimeout = () => 0;
globalThis.fetch = async (address) => {
  const { pathname } = new URL(address);
  const data = answers[pathname.replace("/cdc/api/", "")];
  return { ok: data !== undefined, status: data === undefined ? 404 : 200, json: async () => data ?? { detail: `no answer for ${pathname}` } };
};

await import(pathToFileURL(script).href);
let page = "";
for (let round = 0; round < 20 && dirty; round += 1) {
  [dirty, effects] = [false, []];
  page = html(React.createElement(globalThis[tab ? "CDC" : "CDC pipelines"], tab), "");
  effects.forEach((effect) => effect());
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
process.stdout.write(`<title>${document.title}</title>${page}`);
