// Searches messages over server-sent events: rows as they come, progress, stop; saved filters, export, one message.
import { html, useEffect, useRef, useState } from "/static/vendor/ui.js";
import { Chip, Drawer, Meter, Problem, ask, bytes, canChange, count, go, moment, query, topicPath, useAction, when, withQuery } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";

const KEEP = 50000, MORE = 200, SAVED = "barnabas-filters";
const STARTS = [["newest", "newest"], ["oldest", "oldest"], ["live", "live"], ["offset", "an offset"], ["time", "a time"]], DECODERS = ["auto", "json", "text", "hex", "arrow"];
const pretty = (part) => {
  if (part.kind !== "json" || part.cut) return part.kind === "null" ? "null" : part.text;
  try { return JSON.stringify(JSON.parse(part.text), null, 2); } catch { return part.text; }
};
const shown = (part) => part.kind === "null" ? html`<span class="soft">null</span>` : part.text + (part.cut ? " …" : "");
const quoted = (text) => '"' + text.replaceAll("\\", "\\\\").replaceAll('"', '\\"') + '"';
const savedOnes = () => { try { return JSON.parse(localStorage.getItem(SAVED)) || []; } catch { return []; } };

// What the server is asked for, from the address.
function wanted(filter) {
  const now = query(), start = now.get("start") || "newest";
  const found = new URLSearchParams({ start, filter, limit: now.get("limit") || "100", decoder: now.get("decoder") || "auto" });
  if (now.get("partition")) found.set("partition", now.get("partition"));
  if (start === "offset") found.set("at", now.get("at") || "0");
  if (start === "time") found.set("at", String(moment(now.get("at") || "1970-01-01") || 0));
  return found;
}

function Part({ title, part, note }) {
  const copy = () => navigator.clipboard?.writeText(part.text);
  return html`<div class="head"><h3>${title} <${Chip} text=${part.kind} /> <span class="soft">${part.kind === "null" ? "" : bytes(part.size) + (part.cut ? ", cut" : "")}</span></h3>${note}<button class="act" onClick=${copy}>Copy</button></div><pre class="code" tabindex="0">${pretty(part)}</pre>`;
}

function Message({ name, row, onClose, onFilter, onStep }) {
  const [whole, setWhole] = useState(row), [decoder, setDecoder] = useState("auto"), act = useAction();
  const at = { partition: row.partition, offset: row.offset };
  useEffect(() => { let gone = false; setWhole(row);
    ask(topicPath(name) + "/message?" + new URLSearchParams({ ...at, decoder })).then((found) => gone || setWhole(found), (error) => gone || act.run(() => { throw error; }));
    return () => { gone = true; }; }, [row, decoder]);
  const again = () => act.run(async () => { const done = await ask(topicPath(name) + "/again", at); return `Written again to partition ${done.partition} at offset ${done.offset}.`; });
  return html`<${Drawer} title=${`Partition ${row.partition}, offset ${row.offset}`} onClose=${onClose}><p class="soft">${row.timestampType} ${when(row.timestamp)} UTC</p>
    <div class="bar"><button class="act" onClick=${() => onStep(-1)}>Previous</button><button class="act" onClick=${() => onStep(1)}>Next</button><label class="beside">Show as<select value=${decoder} onChange=${(event) => setDecoder(event.target.value)}>${DECODERS.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
      ${canChange() && html`<button class="act" disabled=${act.busy} onClick=${again}>Produce again</button>`}</div>${act.say}
    <${Part} title="Key" part=${whole.key} note=${whole.key.kind === "text" && html`<button class="act" onClick=${() => onFilter("key == " + quoted(whole.key.text))}>Only this key</button>`} /><${Part} title="Value" part=${whole.value} />
    <h3>Headers</h3>${whole.headers.length ? html`<${Table} label="Headers" empty="" rows=${whole.headers} columns=${[["Name", (h) => h.name, { cls: "name" }], ["Value", (h) => shown(h.value), { cls: "value" }],
      ["", (h) => /^[A-Za-z_][\w-]*$/.test(h.name) && h.value.kind !== "null" && html`<button class="act" aria-label=${"Only messages with this " + h.name} onClick=${() => onFilter(`header.${h.name} == ${quoted(h.value.text)}`)}>Only these</button>`]]} />` : html`<p class="soft">none</p>`}<//>`;
}

function Saved({ filter, onUse }) {
  const [all, set] = useState(savedOnes());
  const keep = (next) => { localStorage.setItem(SAVED, JSON.stringify(next)); set(next); };
  return html`<details class="fold small"><summary>Saved filters (${all.length})</summary><div class="bar"><button type="button" class="act" disabled=${!filter || all.includes(filter)} onClick=${() => keep([...all, filter])}>Save this filter</button></div>
    ${all.length > 0 && html`<ul class="plain">${all.map((each) => html`<li><button type="button" class="link" onClick=${() => onUse(each)}>${each}</button> <button type="button" class="act" aria-label=${"Forget " + each} onClick=${() => keep(all.filter((other) => other !== each))}>Forget</button></li>`)}</ul>`}</details>`;
}

export function Messages({ name, partitions }) {
  const now = query();
  const [rows, setRows] = useState(null), [state, setState] = useState(null), [fault, setFault] = useState(null);
  const [running, setRunning] = useState(false), [open, setOpen] = useState(null), [room, setRoom] = useState(MORE), source = useRef();
  const start = now.get("start") || "newest", filter = now.get("q") || "";
  const stop = () => { source.current?.close(); source.current = null; setRunning(false); };
  const search = () => {
    stop(); setRows([]); setState(null); setFault(null); setOpen(null); setRoom(MORE);
    const path = topicPath(name) + "/messages?" + wanted(query().get("q") || ""), live = (query().get("start") || "newest") === "live";
    const stream = new EventSource("/api" + path);
    source.current = stream; setRunning(true);
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
  const field = (key) => (event) => go(withQuery({ [key]: event.target.value }), true);
  const use = (text) => { go(withQuery({ q: text }), true); search(); };
  const step = (by) => { const at = rows.findIndex((row) => row === open) + by; if (rows[at]) setOpen(rows[at]); };
  const file = (format) => "/api" + topicPath(name) + "/export?format=" + format + "&" + wanted(filter);
  return html`<form class="bar" onSubmit=${(event) => { event.preventDefault(); search(); }}>
    <label>From<select value=${start} onChange=${field("start")}>${STARTS.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>
    ${(start === "offset" || start === "time") && html`<label>${start === "offset" ? "Offset" : "Time (UTC)"}<input value=${now.get("at") || ""} onInput=${field("at")} placeholder=${start === "time" ? "2026-01-31T12:00" : "0"} /></label>`}
    <label>Partition<select value=${now.get("partition") || ""} onChange=${field("partition")}><option value="">all</option>${Array.from({ length: Math.min(partitions, 1000) }, (_, each) => html`<option value=${each}>${each}</option>`)}</select></label>
    <label class="wide">Filter<input data-filter value=${filter} onInput=${field("q")} placeholder='"text", key == "7" and value.price > 10' spellcheck="false" autocomplete="off" /></label>
    <label>Show as<select value=${now.get("decoder") || "auto"} onChange=${field("decoder")}>${DECODERS.map((each) => html`<option value=${each}>${each}</option>`)}</select></label>
    <label>At most<select value=${now.get("limit") || "100"} onChange=${field("limit")}>${["100", "1000", "10000"].map((each) => html`<option value=${each}>${count(each)}</option>`)}</select></label>
    ${/* with keys: one button that becomes the other would submit the form that it is in */ running ? html`<button key="stop" type="button" class="act" onClick=${stop}>Stop</button>` : html`<button key="search" class="act main">Search</button>`}</form><${Saved} filter=${filter} onUse=${use} />
    ${fault && html`<${Problem} text=${fault.message + (fault.position != null ? " (at character " + (fault.position + 1) + ")" : "")} />`}
    ${fault?.position != null && html`<pre class="note" tabindex="0">${filter}${"\n" + " ".repeat(fault.position) + "^"}</pre>`}
    <div class="head"><p class="soft" role="status">${state && `scanned ${count(state.scanned)}${state.total ? " of " + count(state.total) : ""}, matched ${count(state.matched)}, ${bytes(state.bytes)}`}${running ? " …" : ""}</p>
      ${start !== "live" && html`<span class="buttons"><a class="act" href=${file("csv")} download>Export CSV</a><a class="act" href=${file("jsonl")} download>Export JSON lines</a></span>`}</div>
    ${running && state?.total > 0 && html`<${Meter} share=${Math.min(1, state.scanned / state.total)} text="" label="Scanned" />`}
    ${open && html`<${Message} name=${name} row=${open} onClose=${() => setOpen(null)} onFilter=${use} onStep=${step} />`}
    <${Table} label="Messages" id=${(r) => r.partition + ":" + r.offset} empty=${running ? (start === "live" ? "Waiting for messages …" : "Searching …") : filter ? "No message matches" : "There are no messages"} rows=${rows?.slice(0, room)} columns=${[
      ["Offset", (r) => html`<button class="link" onClick=${() => setOpen(r)} aria-label=${r.partition + ":" + r.offset + " Open offset " + r.offset + " of partition " + r.partition}>${r.partition}:${r.offset}</button>`, { cls: "time" }],
      ["Time (UTC)", (r) => when(r.timestamp), { cls: "time" }], ["Key", (r) => shown(r.key), { cls: "value" }], ["Value", (r) => shown(r.value), { cls: "value" }],
      ["Headers", (r) => r.headers.map((each) => html`<div>${each.name}=${shown(each.value)}</div>`), { cls: "value" }]]} />
    ${rows?.length > room && html`<p class="bar pages"><button class="act" onClick=${() => setRoom(room + MORE)}>Show ${MORE} more</button><span class="soft">${count(room)} of ${count(rows.length)} are shown</span></p>`}`;
}
