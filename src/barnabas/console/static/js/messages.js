// Searches messages over server-sent events: rows as they come, progress, stop.
import { html, useEffect, useRef, useState } from "/static/vendor/ui.js";
import { Problem, Table, ask, bytes, count, go, query, when, withQuery } from "/static/js/base.js";

const KEEP = 2000;
const pretty = (part) => {
  if (part.kind === "null") return "null";
  if (part.kind !== "json" || part.cut) return part.text;
  try { return JSON.stringify(JSON.parse(part.text), null, 2); } catch { return part.text; }
};
const shown = (part) => part.kind === "null" ? html`<span class="soft">null</span>` : part.text + (part.cut ? " …" : "");

export function Messages({ name, partitions }) {
  const now = query();
  const [rows, setRows] = useState(null), [state, setState] = useState(null), [fault, setFault] = useState(null);
  const [running, setRunning] = useState(false), [open, setOpen] = useState(null), source = useRef();
  const start = now.get("start") || "newest", filter = now.get("q") || "";
  const stop = () => { source.current?.close(); source.current = null; setRunning(false); };
  const search = async () => {
    stop(); setRows([]); setState(null); setFault(null); setOpen(null);
    const wanted = new URLSearchParams({ start, filter, limit: now.get("limit") || "100", decoder: now.get("decoder") || "auto" });
    if (now.get("partition")) wanted.set("partition", now.get("partition"));
    if (start === "offset") wanted.set("at", now.get("at") || "0");
    if (start === "time") wanted.set("at", String(Date.parse((now.get("at") || "1970-01-01") + (/(Z|[+-]\d\d:\d\d)$/.test(now.get("at") || "") ? "" : "Z")) || 0));
    const path = "/topics/" + encodeURIComponent(name) + "/messages?" + wanted;
    const stream = new EventSource("/api" + path);
    source.current = stream; setRunning(true);
    const live = start === "live";
    stream.addEventListener("rows", (event) => { const more = JSON.parse(event.data).rows; setRows((old) => live ? [...more.reverse(), ...old].slice(0, KEEP) : [...old, ...more]); });
    stream.addEventListener("progress", (event) => setState(JSON.parse(event.data)));
    stream.addEventListener("done", (event) => { setState(JSON.parse(event.data)); stop(); });
    stream.addEventListener("fault", (event) => { setFault(JSON.parse(event.data)); stop(); });
    stream.onerror = async () => {
      stop();
      // An EventSource does not tell why: the same question as a plain request does.
      const response = await fetch("/api" + path).catch(() => null);
      if (response && !response.ok) setFault((await response.json()).error); else { response?.body?.cancel(); setFault({ message: "The connection to the console was lost." }); }
    };
  };
  useEffect(() => { search(); return stop; }, []);
  const field = (key, replace = true) => (event) => go(withQuery({ [key]: event.target.value }), replace);
  const show = async (row) => {
    setOpen(row);
    try { setOpen({ ...row, ...await ask("/topics/" + encodeURIComponent(name) + "/message?partition=" + row.partition + "&offset=" + row.offset) }); }
    catch (error) { setFault({ message: error.message }); }
  };
  return html`<form class="bar" onSubmit=${(event) => { event.preventDefault(); search(); }}>
    <label>From<select value=${start} onChange=${field("start")}>${["newest", "oldest", "live", "offset", "time"].map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
    ${(start === "offset" || start === "time") && html`<label>${start === "offset" ? "Offset" : "Time (UTC)"}<input value=${now.get("at") || ""} onInput=${field("at")} placeholder=${start === "time" ? "2026-01-31T12:00" : "0"} /></label>`}
    <label>Partition<select value=${now.get("partition") || ""} onChange=${field("partition")}><option value="">all</option>${Array.from({ length: Math.min(partitions, 1000) }, (_, each) => html`<option value=${each}>${each}</option>`)}</select></label>
    <label class="wide">Filter<input value=${filter} onInput=${field("q")} placeholder='"text", key == "7" and value.price > 10' spellcheck="false" /></label>
    <label>Show as<select value=${now.get("decoder") || "auto"} onChange=${field("decoder")}>${["auto", "json", "text", "hex"].map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
    ${running ? html`<button type="button" class="act" onClick=${stop}>Stop</button>` : html`<button class="act main">Search</button>`}</form>
    ${fault && html`<${Problem} text=${fault.message + (fault.position != null ? " (at character " + (fault.position + 1) + ")" : "")} />`}
    ${fault?.position != null && html`<pre class="note">${filter}${"\n" + " ".repeat(fault.position) + "^"}</pre>`}
    <p class="soft" role="status">${state && `scanned ${count(state.scanned)}${state.total ? " of " + count(state.total) : ""}, matched ${count(state.matched)}, ${bytes(state.bytes)}`}${running ? " …" : ""}</p>
    ${open && html`<section class="card" aria-label="Message"><div class="bar"><b>partition ${open.partition}, offset ${open.offset}</b>
      <button class="act" onClick=${() => setOpen(null)}>Close</button></div><p class="soft">${open.timestampType} ${when(open.timestamp)} UTC</p>
      <h2>Key</h2><pre>${pretty(open.key)}</pre><h2>Value (${bytes(open.value.size)}${open.value.cut ? ", cut" : ""})</h2><pre>${pretty(open.value)}</pre>
      ${open.headers.length > 0 && html`<h2>Headers</h2>${open.headers.map((each) => html`<pre>${each.name}: ${pretty(each.value)}</pre>`)}`}</section><br />`}
    <${Table} label="Messages" empty=${running ? "Searching …" : "No messages"} rows=${rows} columns=${[
      ["Offset", (r) => html`<button class="act" onClick=${() => show(r)} aria-label=${"Open offset " + r.offset + " of partition " + r.partition}>${r.partition}:${r.offset}</button>`],
      ["Time (UTC)", (r) => when(r.timestamp), { cls: "time" }], ["Key", (r) => shown(r.key), { cls: "value" }], ["Value", (r) => shown(r.value), { cls: "value" }],
      ["Headers", (r) => r.headers.map((each) => html`<div>${each.name}=${shown(each.value)}</div>`), { cls: "value" }]]} />`;
}
