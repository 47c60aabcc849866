// One topic: messages, partitions, groups, producers, settings, ACLs, statistics.
import { html } from "/static/vendor/ui.js";
import { Action, Card, Chip, Crumbs, Field, Problem, Tabs, age, ask, bytes, canChange, count, brokerLink, go, groupLink, query, rate, topicPath, useLive, when } from "/static/js/base.js";
import { Chart, Pages, Range, Table, list } from "/static/js/lists.js";
import { Messages } from "/static/js/messages.js";
import { Produce } from "/static/js/produce.js";
import { Settings } from "/static/js/settings.js";
import { Rules } from "/static/js/users.js";
import { Statistics } from "/static/js/statistics.js";
import { Delayed } from "/static/js/delayed.js";

const TABS = { messages: "Messages", partitions: "Partitions", groups: "Groups", producers: "Producers", settings: "Settings", acls: "ACLs", statistics: "Statistics" };

function TopicActions({ name }) {
  const path = topicPath(name);
  return html`<h2>Change</h2><${Action} title="Clone this topic" button="Clone" run=${async (form) => { await ask(path + "/clone", { name: form.name }); go(topicPath(form.name)); }}>
      <${Field} label="New name" name="name" required /><p class="soft">The same partitions, replicas and settings, without records.</p><//>
    <${Action} title="Empty this topic" button="Delete all records" danger run=${async (form) => { await ask(path + "/empty", { confirm: form.confirm }); return "It is empty."; }}>
      <${Field} label="Type its name to empty it" name="confirm" required /><//>
    <${Action} title="Delete this topic" button="Delete with all records" danger run=${async (form) => { await ask(path + "/delete", { confirm: form.confirm }); go("/topics"); }}>
      <${Field} label="Type its name to delete it" name="confirm" required /><//>`;
}

const PartitionTable = ({ name, data }) => html`<${Table} label="Partitions" empty="None" rows=${data?.partitionRows} columns=${[
    ["Partition", (p) => p.partition, { num: true }], ["Leader", (p) => brokerLink(p.leader), { num: true }], ["Replicas", (p) => p.replicas.join(", ")],
    ["In sync", (p) => p.isr.length < p.replicas.length ? html`<b class="bad">${p.isr.join(", ") || "none"}</b>` : p.isr.join(", ")],
    ["First offset", (p) => count(p.start), { num: true }], ["End", (p) => count(p.end), { num: true }], ["Records", (p) => count(Math.max(0, p.end - p.start)), { num: true }]]} />
  <div class="charts"><${Chart} title="Records per second" series=${"topic.rate/" + name} format=${rate} /><${Chart} title="Lag of its groups" series=${"topic.lag/" + name} /></div><${Range} />`;

const GroupTable = ({ data }) => html`<${Table} label="Groups" empty="No group has committed offsets here" rows=${data?.groupRows} columns=${[
  ["Group", (g) => groupLink(g.groupId), { cls: "name" }], ["State", (g) => html`<${Chip} text=${g.state} />`], ["Lag", (g) => count(g.lag), { num: true }], ["Behind", (g) => age(g.lagSeconds), { num: true }]]} />`;

function Producers({ name }) {
  const { data, error } = useLive(topicPath(name) + "/producers" + list(), 5);
  return html`<${Problem} text=${error} /><p class="soft">Idempotent and transactional producers that the leaders remember. Others leave no trace.${data?.left ? ` ${count(data.left)} partitions are left out.` : ""}</p>
    <${Table} label="Producers" empty="No leader remembers a producer" rows=${data?.items} columns=${[
      ["Partition", (p) => p.partition, { num: true, sort: "name" }], ["Producer id", (p) => p.producerId, { num: true, sort: "producerId" }], ["Epoch", (p) => p.epoch, { num: true }],
      ["Last sequence", (p) => count(p.lastSequence), { num: true }], ["Last record (UTC)", (p) => when(p.lastTimestamp), { cls: "time", sort: "lastTimestamp" }],
      ["Open transaction", (p) => p.transactionStart == null ? "–" : html`<${Chip} text=${"since offset " + p.transactionStart} kind="warn" />`]]} /><${Pages} data=${data} />`;
}

export function Topic({ name }) {
  const { data, error } = useLive(topicPath(name));
  const tab = query().get("tab") || "messages";
  const tabs = data?.isIntake ? { ...TABS, delayed: "Delayed" } : TABS;
  return html`<${Crumbs} path=${[["/topics", "Topics"]]} title=${name} /><${Problem} text=${error || data?.error} />
    ${data && html`<div class="cards"><${Card} name="Partitions" value=${count(data.partitions)} note=${data.replicas + (data.replicas === 1 ? " replica" : " replicas")} />
      <${Card} name="Out of sync" value=${count(data.outOfSync)} bad=${data.outOfSync > 0} />
      <${Card} name="Records" value=${count(data.records)} /><${Card} name="Size" value=${bytes(data.sizeBytes)} note="all replicas" /><${Card} name="Records/s" value=${rate(data.rate)} note=${bytes(data.byteRate) + "/s"} />
      <${Card} name="Lag" value=${data.groups ? count(data.lag) : "–"} note=${data.groups + (data.groups === 1 ? " group" : " groups")} /></div>`}
    <${Tabs} tabs=${tabs} now=${tab} to=${(key) => topicPath(name) + (key === "messages" ? "" : "?tab=" + key)} />
    ${tab === "messages" && html`${canChange() && html`<${Produce} name=${name} />`}<${Messages} key=${name} name=${name} partitions=${data?.partitions || 1} />`}
    ${tab === "partitions" && html`<${PartitionTable} name=${name} data=${data} />`}${tab === "groups" && html`<${GroupTable} data=${data} />`}
    ${tab === "producers" && html`<${Producers} name=${name} />`}${tab === "acls" && html`<${Rules} path=${topicPath(name) + "/acls"} topic=${name} />`}
    ${tab === "statistics" && html`<${Statistics} name=${name} />`}${tab === "delayed" && html`<${Delayed} name=${name} />`}
    ${tab === "settings" && html`<${Settings} path=${topicPath(name) + "/settings"} own=${["DYNAMIC_TOPIC_CONFIG"]} />${canChange() && html`<${TopicActions} name=${name} />`}`}`;
}
