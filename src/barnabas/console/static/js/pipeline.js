// The ODS -> DWD and DIM query: rates in and out, batches, lag, dirty records with reason and origin, routing.
import { html } from "/static/vendor/ui.js";
import { Card, Chip, Empty, Link, Loading, Problem, age, behind, bytes, count, rate, topicLink, topicPath, useLive } from "/static/js/base.js";
import { Chart, Table } from "/static/js/lists.js";

const share = (batch) => batch.rows ? (batch.rows_out ?? 0) / batch.rows : 0;
const topicColumns = [["Records/s", (t) => rate(t.rate), { num: true }], ["Records", (t) => count(t.records), { num: true }], ["Size", (t) => bytes(t.sizeBytes), { num: true }]];
const place = (t) => t.exists ? topicLink(t.topic) : html`${t.topic} <span class="soft">not there yet</span>`;

function Dirty({ topic }) {
  const { data, error } = useLive("/pipeline/dirty", 5);
  return html`<h2>Dirty records</h2><${Problem} text=${error} />${data && html`<p class="soft">${count(data.total)} in <${Link} to=${topicPath(topic)}>${topic}<//>; the newest are below.</p>
    <${Table} label="Reasons" empty="None: every record could be read" rows=${data.reasons} columns=${[["Reason", (r) => r.reason, { cls: "name" }], [`Among the newest ${data.items.length}`, (r) => count(r.records), { num: true }]]} />
    ${data.items.length > 0 && html`<br /><${Table} label="Newest dirty records" empty="" rows=${data.items.slice(0, 20)} columns=${[["Reason", (r) => r.reason ?? "–", { cls: "name" }],
      ["Origin", (r) => r.origin.topic ? html`<${Link} to=${topicPath(r.origin.topic) + `?start=offset&at=${r.origin.offset}&partition=${r.origin.partition}&limit=1`}>${r.origin.topic}-${r.origin.partition} offset ${r.origin.offset}<//>` : "–", { cls: "name" }],
      ["Record", (r) => r.value.text + (r.value.cut ? " …" : ""), { cls: "value" }]]} />`}`}`;
}

const One = ({ each }) => html`<section><div class="head"><h2>${each.name || each.checkpoint}</h2>${each.state.state && html`<${Chip} text=${each.state.state} />`}</div><${Problem} text=${each.problem} />
  <div class="cards"><${Card} name="Come in" value=${rate(each.arrivingPerSecond) + "/s"} /><${Card} name="Taken" value=${each.takenPerSecond == null ? "–" : rate(each.takenPerSecond) + "/s"} /><${Card} name="Lag" value=${count(each.lag)} note="records" /><${Card} name="Behind" value=${behind(each)} />
    <${Card} name="Last batch" value=${each.batches[0] ? age(each.batches[0].seconds) : "–"} note=${each.batches[0] ? count(each.batches[0].rows) + " in, " + count(each.batches[0].rows_out) + " out" : ""} />
    <${Card} name="No route" value=${count(each.unrouted.reduce((sum, one) => sum + one.changes, 0))} note=${"changes, " + (each.unroutedAre === "dirty" ? "kept as dirty" : "counted only")} /></div>
  ${each.name && html`<div class="charts"><${Chart} title="Lag in records" series=${"group.lag/" + each.name} /><${Chart} title="Lag in seconds" series=${"group.seconds/" + each.name} format=${age} /></div>`}
  <h3>Read from</h3><${Table} label="Sources" empty="The query has not committed anything yet" rows=${each.sources} columns=${[["Topic", place, { cls: "name" }], ...topicColumns, ["Lag", (t) => count(t.lag), { num: true }]]} />
  <h3>Written to</h3><${Table} label="Targets" empty="There is no routing yet" rows=${each.targets} columns=${[["Topic", place, { cls: "name" }], ["Table", (t) => t.table], ["Kind", (t) => html`<${Chip} text=${t.kind} />`], ...topicColumns]} />
  <h3>Batches</h3><${Table} label="Batches" empty="No batch has ended yet" rows=${each.batches} columns=${[["Batch", (b) => b.batch, { num: true }], ["At (UTC)", (b) => b.at.slice(0, 19).replace("T", " "), { cls: "time" }], ["In", (b) => count(b.rows), { num: true }], ["Out", (b) => count(b.rows_out), { num: true }],
    ["Out per in", (b) => share(b).toFixed(1), { num: true }], ["Time", (b) => age(b.seconds), { num: true }], ["In/s", (b) => count(b.rows_per_second), { num: true }], ["Lag", (b) => count(b.lag), { num: true }]]} />
  <h3>Routing</h3><p class="soft">${each.routingSince == null ? "" : `In force since batch ${each.routingSince}.`}</p><${Table} label="Routing" empty="There is no routing yet" rows=${each.routes} columns=${[["Table", (r) => html`${r.database && html`<span class="soft">${r.database}.</span>`}${r.table}`, { cls: "name" }], ["Kind", (r) => html`<${Chip} text=${r.kind} />`],
    ["Topic", (r) => topicLink(r.topic), { cls: "name" }], ["Key", (r) => r.key.join(", ")], ["Columns", (r) => r.columns ? r.columns.join(", ") : "all", { cls: "name" }]]} />
  ${each.unrouted.length > 0 && html`<h3>Tables without a route</h3><${Table} label="Tables without a route" empty="" rows=${each.unrouted} columns=${[["Table", (t) => t.table, { cls: "name" }], ["Changes", (t) => count(t.changes), { num: true }]]} />`}</section>`;

export function Pipeline() {
  const { data, error } = useLive("/pipeline", 2);
  return html`<h1>Pipeline</h1><${Problem} text=${error || data?.error} />${!data && !error && html`<${Loading} />`}
    ${data?.items.length === 0 && html`<${Empty} title="This console shows no pipeline">Start it with <code>barnabas console --pipeline CHECKPOINT</code>, the directory that <code>barnabas pipeline run</code> was given.<//>`}
    ${data?.items.map((each) => html`<${One} key=${each.checkpoint} each=${each} />`)}${data?.dirtyTopic && html`<${Dirty} topic=${data.dirtyTopic} />`}`;
}
