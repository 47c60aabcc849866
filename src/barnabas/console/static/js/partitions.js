// All partitions of the cluster: filter by state and broker, elect, choose some to move.
import { html, useState } from "/static/vendor/ui.js";
import { Choice, Problem, ask, brokerLink, bytes, canChange, count, go, query, rate, topicLink, useAction, useLive, withQuery } from "/static/js/base.js";
import { Filter, Pages, Table, list } from "/static/js/lists.js";

const STATES = [["", "all"], ["out-of-sync", "out of sync"], ["offline", "without leader"], ["not-preferred", "not led by the preferred replica"]];
const keyOf = (row) => row.topic + ":" + row.partition;
export const fromKey = (key) => ({ topic: key.slice(0, key.lastIndexOf(":")), partition: Number(key.slice(key.lastIndexOf(":") + 1)) });

export function Partitions() {
  const { data, error } = useLive("/partitions" + list(), 3), act = useAction();
  const [chosen, choose] = useState(new Set());
  const partitions = [...chosen].map(fromKey), now = query();
  const elect = (unclean) => act.run(async () => { const done = await ask("/partitions/elect", { partitions, unclean }); return `${done.elected} elected, ${done.notNeeded} had the right leader already.`; });
  const move = () => { sessionStorage.setItem("barnabas-move", JSON.stringify(partitions)); go("/reassign?kind=reassign"); };
  return html`<h1>Partitions</h1><${Problem} text=${error || data?.error} />${act.say}
    <div class="bar"><${Filter} label="Filter by topic and partition" /><${Choice} label="State" value=${now.get("state") || ""} options=${STATES} onChange=${(event) => go(withQuery({ state: event.target.value, page: "" }), true)} />
      <label>Broker<input type="number" min="0" value=${now.get("broker") || ""} placeholder="any" onInput=${(event) => go(withQuery({ broker: event.target.value, page: "" }), true)} /></label>
      <label class="tick"><input type="checkbox" checked=${now.get("internal") === "1"} onChange=${(event) => go(withQuery({ internal: event.target.checked ? "1" : "", page: "" }), true)} />Internal topics</label></div>
    ${canChange() && html`<div class="bar"><span class="soft" role="status">${count(chosen.size)} chosen</span><button class="act" disabled=${!chosen.size} onClick=${move}>Move to other brokers …</button>
      <button class="act" disabled=${!chosen.size || act.busy} onClick=${() => elect(false)}>Elect preferred leader</button>
      <button class="act danger" disabled=${!chosen.size || act.busy} title="Any replica may become leader, even if records are lost with it" onClick=${() => confirm("Records that only the lost leader had are gone then. Elect any replica?") && elect(true)}>Elect any replica</button>
      ${chosen.size > 0 && html`<button class="act" onClick=${() => choose(new Set())}>Choose none</button>`}</div>`}
    <${Table} label="Partitions" empty="No partitions like this" rows=${data?.items} id=${keyOf} chosen=${canChange() ? chosen : null} onChoose=${choose} columns=${[
      ["Topic", (p) => topicLink(p.topic), { sort: "name", cls: "name" }], ["Partition", (p) => p.partition, { num: true }],
      ["Leader", (p) => html`${brokerLink(p.leader)}${!p.isPreferred && p.leader >= 0 && html` <span class="soft" title="not the preferred one">*</span>`}`, { sort: "leader", num: true }], ["Replicas", (p) => p.replicas.join(", ")],
      ["In sync", (p) => p.isr.length < p.replicas.length ? html`<b class="bad">${p.isr.join(", ") || "none"}</b>` : p.isr.join(", ")],
      ["Records", (p) => count(p.records), { sort: "records", num: true }], ["Size", (p) => bytes(p.sizeBytes), { sort: "sizeBytes", num: true }], ["Records/s", (p) => rate(p.rate), { sort: "rate", num: true }]]} />
    <${Pages} data=${data} />${data?.items.some((p) => !p.isPreferred && p.leader >= 0) && html`<p class="soft">* another replica than the preferred one leads</p>`}`;
}
