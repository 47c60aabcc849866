// Tables, their filter and pages, and charts with a table twin.
import { html, uPlot, useEffect, useRef, useState } from "/static/vendor/ui.js";
import { Loading, Problem, count, go, query, session, useLive, when, withQuery } from "/static/js/base.js";

export const list = () => "?" + query().toString();

// columns: [title, cell(row), {sort, num, cls}]. With `sort` the head is a button that changes the address.
// `chosen` is a set of keys (`id` of a row), for tables whose rows are ticked.
export function Table({ label, columns, rows, empty, sorted = "name", id, chosen, onChoose }) {
  if (!rows) return html`<${Loading} />`;
  if (!rows.length) return html`<p class="empty card">${empty}</p>`;
  const now = query(), by = now.get("sort") || sorted, down = now.get("order") === "desc";
  const all = chosen && rows.every((row) => chosen.has(id(row)));
  const toggle = (keys, on) => { const next = new Set(chosen); for (const key of keys) on ? next.add(key) : next.delete(key); onChoose(next); };
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${chosen && html`<th scope="col"><input type="checkbox" aria-label="Choose all on this page" checked=${all} onChange=${(event) => toggle(rows.map(id), event.target.checked)} /></th>`}
      ${columns.map(([title, , how = {}]) => html`<th class=${how.num ? "num" : ""} scope="col"
      aria-sort=${how.sort && how.sort === by ? (down ? "descending" : "ascending") : null}>
      ${how.sort ? html`<button onClick=${() => go(withQuery({ sort: how.sort, page: "",
        order: how.sort === by ? (down ? "" : "desc") : how.num ? "desc" : "" }), true)}>${title}${
        how.sort === by ? (down ? " ↓" : " ↑") : ""}</button>` : title || html`<span class="hidden">Actions</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${id?.(row)}>${chosen && html`<td><input type="checkbox" aria-label=${"Choose " + id(row)} checked=${chosen.has(id(row))}
      onChange=${(event) => toggle([id(row)], event.target.checked)} /></td>`}${columns.map(([, cell, how = {}]) =>
      html`<td class=${(how.num ? "num " : "") + (how.cls || "")}>${cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

export const Filter = ({ label }) => html`<label class="wide">${label}<input type="search" data-filter placeholder="Type to filter ( / )" value=${query().get("filter") || ""}
    onInput=${(event) => go(withQuery({ filter: event.target.value, page: "" }), true)} /></label>`;

export const Pages = ({ data }) => data && data.pages > 1 && html`<p class="bar pages">
  <button class="act" disabled=${data.page === 0} onClick=${() => go(withQuery({ page: data.page - 1 }))}>Previous</button>
  <span>page ${data.page + 1} of ${data.pages}, ${count(data.total)} in all</span>
  <button class="act" disabled=${data.page + 1 >= data.pages} onClick=${() => go(withQuery({ page: data.page + 1 }))}>Next</button></p>`;

export const Range = () => session.value.ranges.length > 1 && html`<div class="bar"><label>History<select value=${query().get("range") || "1h"}
  onChange=${(event) => go(withQuery({ range: event.target.value === "1h" ? "" : event.target.value }), true)}>${session.value.ranges.map((each) =>
  html`<option value=${each}>${each}</option>`)}</select></label></div>`;

// A colour of the style sheet as the canvas needs it, in the scheme that is in force.
function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.className = "colour-" + name;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function Chart({ title, series, format = count }) {
  const box = useRef(), plot = useRef(), [at, setAt] = useState(null);
  const { data, error } = useLive("/history?series=" + encodeURIComponent(series) + "&range=" + (query().get("range") || "1h"), 5);
  useEffect(() => {
    if (!data) return;
    const points = [data.times, data.values];
    if (plot.current) { plot.current.setData(points); return; }
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    plot.current = new uPlot({ width: box.current.clientWidth || 300, height: 170, legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
      hooks: { setCursor: [(u) => setAt(u.cursor.idx ?? null)] },
      scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 4) * 1.15] } },
      axes: [{ ...axis, space: 80, values: (_, all) => all.map((time) => when(time * 1000).slice(...(all.at(-1) - all[0] > 172800 ? [5, 10] : all.at(-1) - all[0] > 600 ? [11, 16] : [11, 19]))) }, { ...axis, size: 64, values: (_, all) => all.map(format) }],
      series: [{}, { stroke: () => colour("accent"), fill: () => colour("wash"), width: 2, points: { size: 4 } }] }, points, box.current);
    const sized = new ResizeObserver(() => box.current && plot.current?.setSize({ width: box.current.clientWidth || 300, height: 170 }));
    sized.observe(box.current);
    plot.current.stop = () => sized.disconnect();
  }, [data]);
  useEffect(() => () => { plot.current?.stop(); plot.current?.destroy(); }, []);
  const known = data ? data.times.map((time, index) => [time, data.values[index]]) : [];
  const shown = at != null && known[at] ? known[at] : known[known.length - 1];
  return html`<section class="card chart"><div class="head"><h2>${title}</h2><span class="soft">${shown && shown[1] != null
      ? html`${at != null && when(shown[0] * 1000).slice(11, 19) + " "}<b>${format(shown[1])}</b>` : ""}</span></div><${Problem} text=${error} /><div ref=${box} aria-hidden="true"></div>
    <details><summary>As a table</summary><${Table} label=${title + " as a table"} empty="No values yet" rows=${known.slice(-12).reverse()} columns=${[
      ["Time (UTC)", (row) => when(row[0] * 1000).slice(5, 19)], [title, (row) => format(row[1]), { num: true }]]} /></details></section>`;
}
