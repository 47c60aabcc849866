// What every page uses: the address as state, requests, formats, links, messages.
import { html, signal, useEffect, useRef, useState } from "/static/vendor/ui.js";

export const place = signal(location.pathname + location.search);
export const session = signal(null);
export const go = (to, replace) => {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  place.value = location.pathname + location.search;
};
addEventListener("popstate", () => { place.value = location.pathname + location.search; });

export const query = () => new URLSearchParams(place.value.split("?")[1] || "");
export const withQuery = (changes) => {
  const now = query();
  for (const [name, value] of Object.entries(changes)) value === "" || value == null ? now.delete(name) : now.set(name, value);
  const text = now.toString();
  return location.pathname + (text ? "?" + text : "");
};
export const canChange = () => !session.value.readOnly;

export async function ask(path, body, signal) {
  const options = body === undefined ? { signal } : { method: "POST", body: JSON.stringify(body), signal,
    headers: { "content-type": "application/json", "x-csrf-token": session.value.token } };
  let response;
  try { response = await fetch("/api" + path, options); }
  catch (error) { throw error.name === "AbortError" ? error : new Error("The console does not respond."); }
  if (response.status === 401) { location.assign("/login?to=" + encodeURIComponent(location.pathname + location.search)); throw new Error("Log in again."); }
  const content = await response.json();
  if (!response.ok) throw Object.assign(new Error(content.error.message), content.error);
  return content;
}

// Asks again every two seconds while the tab is visible. Keeps the last response while something is wrong, and while
// another page, order or filter of the same list is on its way.
export function useLive(path, seconds = 2) {
  const [state, set] = useState({}), before = useRef();
  useEffect(() => {
    const stop = new AbortController(), base = path?.split("?")[0];
    let timer, failed = 0;
    if (before.current !== base) set({});
    before.current = base;
    const turn = async () => {
      if (document.visibilityState === "visible") {
        try { const data = await ask(path, undefined, stop.signal); failed = 0; set({ data, reload: turn }); }
        // One failure is tried again before the page says so, unless there is nothing to show.
        catch (error) {
          if (stop.signal.aborted) return;
          failed++; set((old) => ({ ...old, error: failed > 1 || !old.data || error.code ? error.message : undefined }));
        }
      }
      if (!stop.signal.aborted && seconds) timer = setTimeout(turn, seconds * 1000);
    };
    if (path) turn();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [path]);
  return state;
}

// A change: `run` does it, and `fault` and `done` are what to show of it.
export function useAction() {
  const [state, set] = useState({});
  const run = async (work) => {
    set({ busy: true });
    try { set({ done: (await work()) || "" }); return true; } catch (error) { set({ fault: error.message }); return false; }
  };
  return { ...state, run, say: html`<${Problem} text=${state.fault} />${state.done && html`<div class="note good" role="status">${state.done}</div>`}` };
}

export const count = (n) => n == null ? "–" : Math.round(n).toLocaleString("en");
export const rate = (n) => n == null ? "–" : n >= 100 || n === 0 ? count(n) : n.toFixed(1);
export const bytes = (n) => {
  if (n == null) return "–";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (n >= 1000 && at < 5) { n /= 1000; at++; }
  return (at && n < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[at];
};
export const age = (s) => s == null ? "–" : s < 60 ? s.toFixed(1) + " s" : s < 3600 ? Math.round(s / 60) + " min"
  : s < 172800 ? (s / 3600).toFixed(1) + " h" : Math.round(s / 86400) + " d";
export const behind = (each) => each.lagSeconds == null && each.lagSecondsAtLeast ? "≥ " + age(each.lagSecondsAtLeast) : age(each.lagSeconds);
export const when = (ms) => ms == null || ms < 0 ? "–" : new Date(ms).toISOString().replace("T", " ").replace("Z", "");
// A time that somebody typed, as milliseconds; UTC unless it says otherwise. NaN if it is none.
export const moment = (text) => /^\d+$/.test(text) ? Number(text) : Date.parse(text + (/(Z|[+-]\d\d:\d\d)$/.test(text) ? "" : "Z"));
export const topicPath = (name) => "/topics/" + encodeURIComponent(name);
export const topicLink = (name) => html`<${Link} to=${topicPath(name)}>${name}<//>`;
export const groupLink = (id) => html`<${Link} to=${"/group?id=" + encodeURIComponent(id)}>${id || "(empty id)"}<//>`;
export const brokerLink = (id) => id == null || id < 0 ? html`<span class="bad">none</span>` : html`<${Link} to=${"/brokers/" + id}>${id}<//>`;

export const Link = ({ to, children, ...more }) => html`<a href=${to} ...${more} onClick=${(event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault(); go(to);
}}>${children}</a>`;

export const Problem = ({ text }) => text && html`<div class="note bad" role="alert">${text}</div>`;
export const Loading = () => html`<p class="empty" role="status">Loading …</p>`;
export const Empty = ({ title, children }) => html`<div class="empty card"><b>${title}</b>${children && html`<p>${children}</p>`}</div>`;
export const Card = ({ name, value, note, bad }) => html`<div class="card"><span>${name}</span><b class=${bad ? "bad" : ""}>${value}</b>${note && html`<small>${note}</small>`}</div>`;
const KINDS = { Stable: "good", running: "good", Ongoing: "warn", Empty: "", offline: "bad", fenced: "bad", Dead: "bad", silent: "bad", failed: "bad",
  PreparingRebalance: "warn", CompletingRebalance: "warn", Assigning: "warn", Reconciling: "warn", ALLOW: "good", DENY: "bad", firing: "bad", resolved: "good" };
export const Chip = ({ text, kind }) => html`<span class=${"chip " + (kind ?? KINDS[text] ?? "")}>${text}</span>`;
// A share between 0 and 1 as a bar; the text beside it says the same.
export const Meter = ({ share, text, label }) => html`<div class="meter"><progress value=${share} max="1" aria-label=${label} class=${share > 0.9 ? "bad" : share > 0.75 ? "warn" : ""}></progress><span>${text}</span></div>`;
export const Crumbs = ({ path, title, children }) => html`<p class="crumbs">${path.map(([to, name]) => html`<${Link} to=${to}>${name}<//> <span aria-hidden="true">›</span> `)}</p>
  <div class="head"><h1>${title}</h1>${children}</div>`;
export const Tabs = ({ tabs, now, to }) => html`<div class="tabs" role="navigation" aria-label="Tabs">${Object.entries(tabs).map(([key, title]) => html`<${Link} to=${to(key)}
  aria-current=${key === now ? "page" : null}>${title}<//>`)}</div>`;

// What slides over the page: closed with Escape, and the focus goes back to where it was.
export function Drawer({ title, onClose, children }) {
  const box = useRef(), from = useRef(document.activeElement);
  useEffect(() => {
    box.current.focus();
    const onKey = (event) => { if (event.key === "Escape") onClose(); };
    addEventListener("keydown", onKey);
    return () => { removeEventListener("keydown", onKey); from.current?.isConnected && from.current.focus(); };
  }, []);
  return html`<aside class="drawer" role="dialog" aria-label=${title} tabindex="-1" ref=${box}><div class="head"><h2>${title}</h2><button class="act" onClick=${onClose}>Close</button></div>${children}</aside>`;
}

// A form in a fold. `run` gets its fields and returns what to say.
export function Action({ title, button, run, children, danger }) {
  const act = useAction();
  const submit = (event) => { event.preventDefault(); const form = event.target; act.run(() => run(Object.fromEntries(new FormData(form)), form)); };
  return html`<details class="fold"><summary>${title}</summary>${act.say}
    <form class="bar" onSubmit=${submit}>${children}<button class=${"act " + (danger ? "danger" : "main")} disabled=${act.busy}>${button}</button></form></details>`;
}
export const Field = ({ label, wide, children, ...more }) => html`<label class=${wide ? "wide" : ""}>${label}${children || html`<input autocomplete="off" ...${more} />`}</label>`;
export const Choice = ({ label, options, ...more }) => html`<label>${label}<select ...${more}>${options.map((each) => {
  const [value, text] = Array.isArray(each) ? each : [each, each];
  return html`<option value=${value} selected=${more.value === value}>${text}</option>`; })}</select></label>`;
