// Overview, topics, a topic, groups, a group, brokers.
import { html, useState } from "/static/vendor/ui.js";
import { Card, Chart, Filter, Link, Pages, Problem, Range, Table, age, ask, behind, bytes, count, go, query, rate, session, useLive, withQuery } from "/static/js/base.js";
import { GroupActions, Produce, TopicActions } from "/static/js/actions.js";
import { Messages } from "/static/js/messages.js";

const list = () => "?" + query().toString();
const topicLink = (name) => html`<${Link} to=${"/topics/" + encodeURIComponent(name)}>${name}<//>`;
const groupLink = (id) => html`<${Link} to=${"/group?id=" + encodeURIComponent(id)}>${id || "(empty id)"}<//>`;

export function Overview() {
  const { data, error } = useLive("/overview");
  if (!data) return html`<h1>Overview</h1><${Problem} text=${error} /><p class="empty" role="status">Loading …</p>`;
  return html`<h1>Overview</h1><${Problem} text=${error} />${data.alarms > 0 && html`<div class="note bad" role="alert">${count(data.alarms)} alarms: <${Link} to="/alarms">show them<//></div>`}
    ${data.problems.length ? data.problems.map((each) => html`<div class="note bad" role="alert">${each.text} <span>${each.hint}</span></div>`)
      : html`<div class="note good" role="status">${data.collectedAt ? "All is well: every partition has its leader and all replicas are in sync." : "Looking at the cluster …"}</div>`}
    <div class="cards"><${Card} name="Brokers" value=${count(data.brokers)} /><${Card} name="Controller" value=${data.controller ?? "none"} />
      <${Card} name="Topics" value=${count(data.topics)} /><${Card} name="Partitions" value=${count(data.partitions)} />
      <${Card} name="Out of sync" value=${count(data.outOfSync)} /><${Card} name="Groups" value=${count(data.groups)} />
      <${Card} name="Records/s" value=${rate(data.rate)} /><${Card} name="Lag" value=${count(data.lag)} /><${Card} name="On disk" value=${bytes(data.sizeBytes)} /></div>
    <${Range} /><div class="charts"><${Chart} title="Records per second" series="cluster.rate" format=${rate} /><${Chart} title="Lag of all groups" series="cluster.lag" /></div>
    <p class="soft">Cluster ${data.clusterId}</p>`;
}

function CreateTopic() {
  const [fault, set] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target), name = form.get("name");
    const body = { name };
    for (const key of ["partitions", "replicas"]) if (form.get(key)) body[key] = Number(form.get(key));
    try { await ask("/topics", body); go("/topics/" + encodeURIComponent(name)); } catch (error) { set(error.message); }
  };
  return html`<details class="note"><summary>Create a topic</summary><${Problem} text=${fault} /><form class="bar" onSubmit=${submit}>
    <label>Name<input name="name" required /></label><label>Partitions<input name="partitions" type="number" min="1" /></label>
    <label>Replicas<input name="replicas" type="number" min="1" /></label><button class="act main">Create</button></form></details>`;
}

export function Topics() {
  const { data, error } = useLive("/topics" + list());
  return html`<h1>Topics</h1><${Problem} text=${error || data?.error} />${!session.value.readOnly && html`<${CreateTopic} />`}
    <div class="bar"><${Filter} label="Filter by name" /><label><span>Internal</span><input type="checkbox" checked=${query().get("internal") === "1"}
      onChange=${(event) => go(withQuery({ internal: event.target.checked ? "1" : "", page: "" }), true)} /></label></div>
    <${Table} label="Topics" empty="No topics here" rows=${data?.items} columns=${[
      ["Name", (t) => topicLink(t.name), { sort: "name", cls: "name" }], ["Partitions", (t) => count(t.partitions), { sort: "partitions", num: true }],
      ["Replicas", (t) => t.replicas, { sort: "replicas", num: true }], ["Out of sync", (t) => t.outOfSync, { sort: "outOfSync", num: true }],
      ["Records", (t) => count(t.records), { sort: "records", num: true }], ["Size", (t) => bytes(t.sizeBytes), { sort: "sizeBytes", num: true }],
      ["Records/s", (t) => rate(t.rate), { sort: "rate", num: true }], ["Lag", (t) => t.groups ? count(t.lag) : "–", { sort: "lag", num: true }],
      ["Behind", (t) => t.groups ? behind(t) : "–", { sort: "lagSeconds", num: true }]]} /><${Pages} data=${data} />`;
}

function Settings({ name }) {
  const { data, error } = useLive("/topics/" + encodeURIComponent(name) + "/settings", 10);
  const [fault, set] = useState("");
  const change = async (setting, value) => {
    try { await ask("/topics/" + encodeURIComponent(name) + "/settings", { name: setting, value }); set(""); } catch (problem) { set(problem.message); }
  };
  return html`<${Problem} text=${error || fault} /><${Table} label="Settings" empty="No settings" rows=${data?.items} columns=${[
    ["Setting", (s) => html`<b>${s.name}</b><div class="soft">${s.documentation}</div>`, { cls: "name" }],
    ["Value", (s) => session.value.readOnly || s.isReadOnly ? s.value : html`<input aria-label=${s.name} value=${s.value} onChange=${(event) => change(s.name, event.target.value)} />`],
    ["Default", (s) => s.default ?? "–"], ["", (s) => !s.isDefault && s.source === "DYNAMIC_TOPIC_CONFIG" && !session.value.readOnly
      && html`<button class="act" onClick=${() => change(s.name, null)}>Reset</button>`]]} />`;
}

function DeleteTopic({ name }) {
  const [fault, set] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    try { await ask("/topics/" + encodeURIComponent(name) + "/delete", { confirm: new FormData(event.target).get("confirm") }); go("/topics"); }
    catch (error) { set(error.message); }
  };
  return html`<details class="note"><summary>Delete this topic</summary><${Problem} text=${fault} /><form class="bar" onSubmit=${submit}>
    <label>Type its name to delete it<input name="confirm" autocomplete="off" required /></label><button class="act">Delete with all records</button></form></details>`;
}

export function Topic({ name }) {
  const { data, error } = useLive("/topics/" + encodeURIComponent(name));
  const tab = query().get("tab") || "messages";
  const tabs = { messages: "Messages", partitions: "Partitions", groups: "Groups", settings: "Settings" };
  return html`<p><${Link} to="/topics">Topics<//> / ${name}</p><h1>${name}</h1><${Problem} text=${error || data?.error} />
    ${data && html`<div class="cards"><${Card} name="Partitions" value=${count(data.partitions)} /><${Card} name="Replicas" value=${data.replicas} />
      <${Card} name="Records" value=${count(data.records)} /><${Card} name="Size" value=${bytes(data.sizeBytes)} /><${Card} name="Records/s" value=${rate(data.rate)} />
      <${Card} name="Lag" value=${data.groups ? count(data.lag) : "–"} /></div>`}
    <div class="tabs">${Object.entries(tabs).map(([key, title]) => html`<${Link} to=${"/topics/" + encodeURIComponent(name) + "?tab=" + key}
      aria-current=${key === tab ? "page" : null}>${title}<//>`)}</div>
    ${tab === "messages" && html`${!session.value.readOnly && html`<${Produce} name=${name} />`}<${Messages} key=${name} name=${name} partitions=${data?.partitions || 1} />`}
    ${tab === "partitions" && html`<${Table} label="Partitions" empty="None" rows=${data?.partitionRows} columns=${[
      ["Partition", (p) => p.partition, { num: true }], ["Leader", (p) => p.leader < 0 ? "none" : p.leader, { num: true }], ["Replicas", (p) => p.replicas.join(", ")],
      ["In sync", (p) => p.isr.join(", ")], ["First offset", (p) => count(p.start), { num: true }], ["End", (p) => count(p.end), { num: true }]]} />
      <${Range} /><div class="charts"><${Chart} title="Records per second" series=${"topic.rate/" + name} format=${rate} /></div>`}
    ${tab === "groups" && html`<${Table} label="Groups" empty="No group has committed offsets here" rows=${data?.groupRows} columns=${[
      ["Group", (g) => groupLink(g.groupId), { cls: "name" }], ["State", (g) => g.state], ["Lag", (g) => count(g.lag), { num: true }], ["Behind", (g) => age(g.lagSeconds), { num: true }]]} />`}
    ${tab === "settings" && html`<${Settings} name=${name} />${!session.value.readOnly && html`<h2>More</h2><${TopicActions} name=${name} /><${DeleteTopic} name=${name} />`}`}`;
}

export function Groups() {
  const { data, error } = useLive("/groups" + list());
  return html`<h1>Groups</h1><${Problem} text=${error || data?.error} /><div class="bar"><${Filter} label="Filter by id" /></div>
    <${Table} label="Groups" empty="No groups here" rows=${data?.items} columns=${[
      ["Group", (g) => groupLink(g.groupId), { sort: "name", cls: "name" }], ["State", (g) => html`<span class="chip">${g.state}</span>`, { sort: "state" }],
      ["Members", (g) => count(g.members), { sort: "members", num: true }], ["Topics", (g) => g.topics.length, { num: true }],
      ["Records/s", (g) => rate(g.rate), { sort: "rate", num: true }], ["Lag", (g) => count(g.lag), { sort: "lag", num: true }],
      ["Behind", behind, { sort: "lagSeconds", num: true }]]} /><${Pages} data=${data} />`;
}

export function Group() {
  const id = query().get("id") || "";
  const { data, error } = useLive("/group?id=" + encodeURIComponent(id));
  return html`<p><${Link} to="/groups">Groups<//> / ${id}</p><h1>${id}</h1><${Problem} text=${error || data?.error} />
    ${data && html`<div class="cards"><${Card} name="State" value=${data.state} /><${Card} name="Members" value=${count(data.members)} /><${Card} name="Assignor" value=${data.assignor || "–"} />
      <${Card} name="Lag" value=${count(data.lag)} /><${Card} name="Behind" value=${behind(data)} /><${Card} name="Records/s" value=${rate(data.rate)} /></div>`}
    <${Range} /><div class="charts"><${Chart} title="Lag in records" series=${"group.lag/" + id} /><${Chart} title="Lag in seconds" series=${"group.seconds/" + id} format=${age} /></div>
    <h2>Partitions</h2><${Table} label="Partitions" empty="Nothing committed" rows=${data?.partitionRows} columns=${[
      ["Topic", (p) => topicLink(p.topic), { cls: "name" }], ["Partition", (p) => p.partition, { num: true }], ["Offset", (p) => count(p.offset), { num: true }],
      ["Lag", (p) => count(p.lag), { num: true }], ["Behind", (p) => age(p.lagSeconds), { num: true }], ["Member", (p) => p.clientId ?? "–", { cls: "name" }]]} />
    <h2>Members</h2><${Table} label="Members" empty="No members" rows=${data?.memberRows} columns=${[
      ["Client", (m) => m.clientId, { cls: "name" }], ["Host", (m) => m.host], ["Member id", (m) => m.memberId, { cls: "name" }], ["Partitions", (m) => m.partitions.join(", ") || "–", { cls: "name" }]]} />
    ${!session.value.readOnly && html`<h2>Change</h2><${GroupActions} key=${id} id=${id} />`}`;
}

export function Brokers() {
  const { data, error } = useLive("/brokers", 5);
  return html`<h1>Brokers</h1><${Problem} text=${error || data?.error} /><${Table} label="Brokers" empty="No brokers" rows=${data?.items} columns=${[
    ["Id", (b) => b.id, { num: true }], ["Address", (b) => b.address], ["Controller", (b) => b.isController ? "yes" : "–"], ["Rack", (b) => b.rack ?? "–"],
    ["Leaders", (b) => count(b.leaders), { num: true }], ["Replicas", (b) => count(b.replicas), { num: true }], ["Logs", (b) => bytes(b.sizeBytes), { num: true }],
    ["Disk free", (b) => b.totalBytes ? bytes(b.usableBytes) + " of " + bytes(b.totalBytes) : "–", { num: true }], ["Directories", (b) => b.directories.join(", "), { cls: "name" }]]} />`;
}
