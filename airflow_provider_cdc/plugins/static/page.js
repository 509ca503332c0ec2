// SPDX-License-Identifier: Apache-2.0
// The page "CDC pipelines" in Airflow's UI: written by hand, without a build. React and the router are the UI's own.
//
// Names of tables, reasons and statements come from logs and are hostile: they reach the page only as text nodes and
// as values of attributes that React sets, never as HTML or as addresses.

import { Fragment, h, useEffect, useSearchParams } from "./react.js";
import { PipelineList } from "./list.js";
import { PipelinePage } from "./pipeline.js";

/** Show the page; Airflow names DAG and task where it is a tab of one. */
function CdcPage({ dagId, taskId }) {
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
  useEffect(() => {
    if (dagId) return undefined; // Airflow names the DAG
    const before = document.title;
    document.title = `${name ?? "CDC pipelines"} - ${before}`;
    return () => { document.title = before; };
  }, [dagId, name]);
  return h("main", { className: "cdc" },
    name === null
      ? h(Fragment, null, !dagId && h("h1", null, "CDC pipelines"),
        h(PipelineList, { group: parameters.get("group"), of: parameters.get("ledger"), tab: dagId && { dag: dagId, task: taskId } }))
      : h(PipelinePage, { key: name, name, ledger: parameters.get("ledger"), seq: Number.isNaN(seq) ? null : seq }));
}

globalThis["CDC pipelines"] = CdcPage;
globalThis.CDC = CdcPage; // the tabs' name
