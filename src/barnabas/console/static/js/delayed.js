// Delayed messages that wait in an intake topic, by due time.
import { html } from "/static/vendor/ui.js";
import { Card, Chip, Loading, Problem, age, count, topicLink, topicPath, useLive, when } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";

export function Delayed({ name }) {
  const { data, error } = useLive(topicPath(name) + "/delayed", 5);
  return html`<${Problem} text=${error} />${!data && !error && html`<${Loading} />`}${data && html`<div class="cards"><${Card} name="Pending" value=${count(data.pending) + (data.isComplete ? "" : " or more")} /><${Card} name="Next" value=${data.nextMs == null ? "–" : age(Math.max(0, (data.nextMs - Date.now()) / 1000))} note=${data.nextMs == null ? "" : when(data.nextMs) + " UTC"} />
    <${Card} name="Delivered to" value=${data.target ? topicLink(data.target) : "nowhere: the setting is gone"} /></div>
    ${!data.isComplete && html`<div class="note warn">Only the first ${count(data.scanned)} records that are not delivered yet were read.</div>`}
    <h2>By due time</h2><${Table} label="Pending by due time" empty="Nothing waits" rows=${data.buckets} columns=${[["Due within", (b) => b.label], ["Records", (b) => count(b.records), { num: true }]]} />
    <h2>Next deliveries</h2><${Table} label="Next deliveries" empty="Nothing waits" rows=${data.items} columns=${[["Due (UTC)", (r) => when(r.dueMs), { cls: "time" }], ["Partition", (r) => r.partition, { num: true }], ["Offset", (r) => count(r.offset), { num: true }],
      ["Key", (r) => r.key.kind === "null" ? html`<span class="soft">null</span>` : r.key.text, { cls: "value" }], ["Value", (r) => r.value.text, { cls: "value" }], ["", (r) => r.dueMs < Date.now() && html`<${Chip} text="due" kind="warn" />`]]} />`}`;
}
