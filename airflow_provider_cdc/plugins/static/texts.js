// SPDX-License-Identifier: Apache-2.0
// Write numbers, durations and times as people read them.

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Return bytes as files are measured. */
export function bytes(count) {
  const power = Math.max(0, Math.min(4, Math.floor(Math.log10(Math.max(count, 1)) / 3)));
  const value = count / 1000 ** power;
  return `${power && value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

export const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
export const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

/** Return a moment; source times are microseconds. */
export const moment = (at) => new Date(typeof at === "number" ? at / 1000 : at);

const BROWSERS = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Return the time zone of Airflow's UI: the one that the user chose, else the browser's. */
export function zone() {
  try {
    return JSON.parse(globalThis.localStorage.getItem("timezone")) || BROWSERS;
  } catch {
    return BROWSERS;
  }
}

const formats = {}; // by time zone: one takes long to make

/** Return a moment as ISO text in the UI's time zone, to the second. */
export function clock(at) {
  const timeZone = zone();
  formats[timeZone] ??= new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  return formats[timeZone].format(moment(at));
}
export const age = (at) => duration((Date.now() - moment(at).getTime()) / 1000);
export const ago = (at) => `${age(at)} ago`;

/** Return how long it is until a time, which may be over. */
export function until(at) {
  const seconds = (moment(at).getTime() - Date.now()) / 1000;
  return seconds < 0 ? `due for ${duration(-seconds)}` : `in ${duration(seconds)}`;
}

export const changesText = (changes) => Object.entries(changes ?? {}).map(([op, count]) => `${number(count)} ${op}`).join(", ");
