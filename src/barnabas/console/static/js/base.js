// What every page uses: the address as state, requests, formats, tables, charts.
import { html, signal, uPlot, useEffect, useRef, useState } from "/static/vendor/ui.js";

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

export async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body),
    headers: { "content-type": "application/json", "x-csrf-token": session.value.token } };
  let response;
  try { response = await fetch("/api" + path, options); }
  catch { throw new Error("The console does not respond."); }
  if (response.status === 401) { location.assign("/login?to=" + encodeURIComponent(location.pathname + location.search)); throw new Error("Log in again."); }
  const content = await response.json();
  if (!response.ok) throw Object.assign(new Error(content.error.message), content.error);
  return content;
}

// Asks again every two seconds while the tab is visible; keeps the last answer while something is wrong.
export function useLive(path, seconds = 2) {
  const [state, set] = useState({});
  useEffect(() => {
    let timer, gone = false, failed = 0;
    set({});
    const turn = async () => {
      if (document.visibilityState === "visible") {
        try { const data = await ask(path); failed = 0; if (!gone) set({ data }); }
        // One failure is tried again before the page says so, unless there is nothing to show.
        catch (error) { failed++; if (!gone) set((old) => ({ data: old.data, error: failed > 1 || !old.data ? error.message : undefined })); }
      }
      if (!gone) timer = setTimeout(turn, seconds * 1000);
    };
    turn();
    return () => { gone = true; clearTimeout(timer); };
  }, [path]);
  return state;
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
export const when = (ms) => ms < 0 ? "–" : new Date(ms).toISOString().replace("T", " ").replace("Z", "");

export const Link = ({ to, children, ...more }) => html`<a href=${to} ...${more} onClick=${(event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault(); go(to);
}}>${children}</a>`;

export const Problem = ({ text }) => text && html`<div class="note bad" role="alert">${text}</div>`;
export const Card = ({ name, value }) => html`<div class="card"><span>${name}</span><b>${value}</b></div>`;

// columns: [title, cell(row), {sort, num, cls}]. With `sort` the head is a button that changes the address.
export function Table({ label, columns, rows, empty }) {
  if (!rows) return html`<p class="empty" role="status">Loading …</p>`;
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  const now = query(), sorted = now.get("sort") || "name", down = now.get("order") === "desc";
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${columns.map(([title, , how = {}]) => html`<th class=${how.num ? "num" : ""} scope="col"
      aria-sort=${how.sort && how.sort === sorted ? (down ? "descending" : "ascending") : null}>
      ${how.sort ? html`<button onClick=${() => go(withQuery({ sort: how.sort, page: "",
        order: how.sort === sorted ? (down ? "" : "desc") : how.num ? "desc" : "" }), true)}>${title}${
        how.sort === sorted ? (down ? " ↓" : " ↑") : ""}</button>` : title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${columns.map(([, cell, how = {}]) =>
      html`<td class=${(how.num ? "num " : "") + (how.cls || "")}>${cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

export function Filter({ label }) {
  return html`<label class="wide">${label}<input type="search" value=${query().get("filter") || ""}
    onInput=${(event) => go(withQuery({ filter: event.target.value, page: "" }), true)} /></label>`;
}

export const Pages = ({ data }) => data && data.pages > 1 && html`<p class="bar">
  <button class="act" disabled=${data.page === 0} onClick=${() => go(withQuery({ page: data.page - 1 }))}>Previous</button>
  <span>page ${data.page + 1} of ${data.pages}, ${count(data.total)} in all</span>
  <button class="act" disabled=${data.page + 1 >= data.pages} onClick=${() => go(withQuery({ page: data.page + 1 }))}>Next</button></p>`;

export const Range = () => session.value.ranges.length > 1 && html`<div class="bar"><label>History<select value=${query().get("range") || "1h"}
  onChange=${(event) => go(withQuery({ range: event.target.value === "1h" ? "" : event.target.value }), true)}>${session.value.ranges.map((each) =>
  html`<option value=${each}>${each}</option>`)}</select></label></div>`;

export function Chart({ title, series, format = count }) {
  const box = useRef(), plot = useRef();
  const { data, error } = useLive("/history?series=" + encodeURIComponent(series) + "&range=" + (query().get("range") || "1h"), 5);
  useEffect(() => {
    if (!data) return;
    const points = [data.times, data.values];
    if (plot.current) { plot.current.setData(points); return; }
    const style = getComputedStyle(document.documentElement), soft = style.getPropertyValue("--soft");
    const axis = { stroke: soft, grid: { stroke: style.getPropertyValue("--line"), width: 1 }, ticks: { show: false } };
    plot.current = new uPlot({ width: box.current.clientWidth || 300, height: 160, cursor: { show: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.1] } },
      axes: [axis, { ...axis, size: 60, values: (_, all) => all.map(format) }],
      series: [{}, { stroke: style.getPropertyValue("--accent"), width: 2 }] }, points, box.current);
  }, [data]);
  useEffect(() => () => plot.current && plot.current.destroy(), []);
  const last = data ? data.times.map((time, at) => [time, data.values[at]]).slice(-12).reverse() : [];
  return html`<section class="card chart"><h3>${title}</h3><${Problem} text=${error} /><div ref=${box} aria-hidden="true"></div>
    <details><summary>As a table</summary><${Table} label=${title} empty="No values yet" rows=${last} columns=${[
      ["Time (UTC)", (row) => when(row[0] * 1000).slice(5, 19)], [title, (row) => format(row[1]), { num: true }]]} /></details></section>`;
}
