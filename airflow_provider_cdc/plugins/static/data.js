// SPDX-License-Identifier: Apache-2.0
// Ask the api-server, and ask again while somebody looks.

import { useCallback, useEffect, useState } from "./react.js";

export const REFRESH_MS = 30_000;
export const PAGE = 50;

/** Return an address of the api-server, which may be below a path of its host. */
export const server = (path) => new URL(path, document.baseURI).href;
export const api = (path) => server(`cdc/api/${path}`);

/** Return the answer of an address: { data, error, reload }; asked again each half minute while the page is seen. */
export function useAnswer(address) {
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
        setAnswer(response.ok ? { address, data, at: new Date() } : { address, error: detail });
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

export function query(parameters) {
  const known = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return new URLSearchParams(known).toString();
}

export const pipelinePath = (ledger, name, part, parameters = {}) =>
  api(`pipelines/${encodeURIComponent(name)}${part}?${query({ ledger, ...parameters })}`);
