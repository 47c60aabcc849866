// Brokers: load, disk, leaders; one of them with its settings; taking one out.
import { html } from "/static/vendor/ui.js";
import { Action, Card, Chip, Crumbs, Field, Link, Meter, Problem, Tabs, ask, brokerLink, bytes, canChange, count, go, query, rate, useAction, useLive } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";
import { Settings } from "/static/js/settings.js";

const disk = (each, name) => each.totalBytes ? html`<${Meter} share=${1 - each.usableBytes / each.totalBytes} text=${bytes(each.usableBytes) + " free"} label=${"Disk of " + name + " in use"} />` : "–";

export function Brokers() {
  const { data, error } = useLive("/brokers", 5), act = useAction();
  const total = data?.items.reduce((sum, each) => sum + each.leaders, 0), off = data?.items.reduce((sum, each) => sum + Math.max(0, each.preferred - each.leaders), 0);
  const elect = () => act.run(async () => { const done = await ask("/partitions/elect", { partitions: null }); return `${done.elected} partitions have their preferred leader back.`; });
  return html`<div class="head"><h1>Brokers</h1>${canChange() && html`<span class="buttons"><button class="act" onClick=${elect} disabled=${act.busy}>Elect preferred leaders</button>
      <${Link} class="act" to="/reassign?kind=balance">Balance the cluster<//><${Link} class="act" to="/brokers/all">Settings of all brokers<//></span>`}</div>
    <${Problem} text=${error || data?.error} />${act.say}
    ${off > 0 && html`<div class="note warn">${count(off)} partitions are not led by their preferred replica.</div>`}
    <${Table} label="Brokers" empty="No brokers" id=${(b) => b.id} rows=${data?.items} columns=${[
    ["Id", (b) => brokerLink(b.id), { num: true }], ["Address", (b) => html`${b.address || "–"}${b.rack && html` <span class="soft">rack ${b.rack}</span>`}`, { cls: "name" }], ["State", (b) => html`<${Chip} text=${b.state} />${b.isController && html` <${Chip} text="controller" />`}`],
    ["Leaders", (b) => html`<${Meter} share=${total ? b.leaders / total : 0} text=${count(b.leaders)} label=${"Share of leaders of broker " + b.id} />`], ["Replicas", (b) => count(b.replicas), { num: true }],
    ["Out of sync", (b) => b.outOfSync ? html`<b class="bad">${count(b.outOfSync)}</b>` : "–", { num: true }],
    ["Records/s", (b) => html`${rate(b.rate)}<div class="soft">${bytes(b.byteRate)}/s</div>`, { num: true }], ["Logs", (b) => bytes(b.sizeBytes), { num: true }], ["Disk", (b) => disk(b, "broker " + b.id)]]} />`;
}

export function Broker({ id }) {
  const { data, error } = useLive("/brokers", 5);
  const all = id === "all", tab = query().get("tab") || (all ? "settings" : "directories"), broker = data?.items.find((each) => String(each.id) === id);
  if (data && !all && !broker) return html`<${Crumbs} path=${[["/brokers", "Brokers"]]} title=${"Broker " + id} /><${Problem} text=${`There is no broker ${id}.`} />`;
  return html`<${Crumbs} path=${[["/brokers", "Brokers"]]} title=${all ? "All brokers" : "Broker " + id}>${broker && canChange() && html`<${Link} class="act" to=${"/reassign?kind=drain&broker=" + id}>Drain this broker<//>`}<//><${Problem} text=${error || data?.error} />
    ${broker && html`<div class="cards"><${Card} name="State" value=${html`<${Chip} text=${broker.state} />`} note=${broker.address} /><${Card} name="Leaders" value=${count(broker.leaders)} note=${"preferred for " + count(broker.preferred)} />
      <${Card} name="Replicas" value=${count(broker.replicas)} note=${count(broker.outOfSync) + " out of sync"} bad=${broker.outOfSync > 0} /><${Card} name="Records/s" value=${rate(broker.rate)} note="as leader" /><${Card} name="Logs" value=${bytes(broker.sizeBytes)} /></div>`}
    ${!all && html`<${Tabs} tabs=${{ directories: "Directories", settings: "Settings", remove: "Take out" }} now=${tab} to=${(key) => "/brokers/" + id + "?tab=" + key} />`}
    ${tab === "directories" && html`<p><${Link} to=${"/partitions?broker=" + id}>Partitions on this broker<//></p><${Table} label="Directories" empty="The broker reports none" rows=${broker?.directories || (data ? [] : undefined)} columns=${[["Path", (d) => d.path, { cls: "name" }],
      ["State", (d) => html`<${Chip} text=${d.error || "online"} kind=${d.error ? "bad" : "good"} />`], ["Replicas", (d) => count(d.replicas), { num: true }], ["Logs", (d) => bytes(d.sizeBytes), { num: true }], ["Disk", (d) => disk(d, d.path)]]} />`}
    ${tab === "settings" && html`<${Settings} path=${"/brokers/" + id + "/settings"} own=${[all ? "DYNAMIC_DEFAULT_BROKER_CONFIG" : "DYNAMIC_BROKER_CONFIG"]} />`}
    ${tab === "remove" && html`<ol class="steps"><li><${Link} to=${"/reassign?kind=drain&broker=" + id}>Drain it<//>: its replicas move to the other brokers. ${broker ? `It holds ${count(broker.replicas)} now.` : ""}</li>
      <li>Stop it on its machine. ${broker ? `It is ${broker.state} now.` : ""}</li><li>Take it out of the cluster for good:</li></ol>
      ${canChange() && html`<${Action} title="Take this broker out" button="Take out" danger run=${async (form) => { await ask("/brokers/" + id + "/decommission", { confirm: form.confirm }); go("/brokers"); }}>
        <${Field} label="Type its id" name="confirm" required /><//>`}`}`;
}
