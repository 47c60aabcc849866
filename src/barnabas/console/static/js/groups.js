// Groups, and one of them: members, lag with its history, reset after a look at what it would change.
import { html, useState } from "/static/vendor/ui.js";
import { Action, Card, Chip, Crumbs, Field, Choice, Problem, age, ask, behind, canChange, count, go, groupLink, moment, query, rate, topicLink, useLive } from "/static/js/base.js";
import { Chart, Filter, Pages, Range, Table, list } from "/static/js/lists.js";

export function Groups() {
  const { data, error } = useLive("/groups" + list());
  return html`<h1>Groups</h1><${Problem} text=${error || data?.error} /><div class="bar"><${Filter} label="Filter by id" /></div>
    <${Table} label="Groups" id=${(g) => g.groupId} rows=${data?.items} empty=${query().get("filter") ? "No group matches the filter" : "No group has joined or committed an offset yet"} columns=${[
      ["Group", (g) => groupLink(g.groupId), { sort: "name", cls: "name" }], ["State", (g) => html`<${Chip} text=${g.state} />`, { sort: "state" }],
      ["Members", (g) => count(g.members), { sort: "members", num: true }], ["Topics", (g) => g.topics.length, { num: true }],
      ["Records/s", (g) => rate(g.rate), { sort: "rate", num: true }], ["Lag", (g) => count(g.lag), { sort: "lag", num: true }],
      ["Behind", behind, { sort: "lagSeconds", num: true }]]} /><${Pages} data=${data} />`;
}

function GroupActions({ id }) {
  const [plan, setPlan] = useState(null), [to, setTo] = useState("earliest");
  const show = async (form) => {
    setPlan(null);
    const value = to === "time" ? moment(form.value) : to === "offset" ? Number(form.value) : 0;
    if (Number.isNaN(value)) throw new Error(to === "time" ? "This is not a time." : "This is not an offset.");
    setPlan((await ask("/group/plan?" + new URLSearchParams({ id, to, value, topic: form.topic }))).items);
  };
  const apply = async () => {
    await ask("/group/offsets", { id, offsets: plan.map((row) => ({ topic: row.topic, partition: row.partition, offset: row.to })) });
    setPlan(null); return "The offsets have been reset.";
  };
  return html`<h2>Change</h2><${Action} title="Reset offsets" button="Show what would change" run=${show}>
      <${Choice} label="To" name="to" value=${to} onChange=${(event) => setTo(event.target.value)} options=${[["earliest", "the oldest records"], ["latest", "the end"], ["offset", "an offset"], ["time", "a time"]]} />
      ${(to === "offset" || to === "time") && html`<${Field} label=${to === "offset" ? "Offset" : "Time (UTC)"} name="value" required placeholder=${to === "offset" ? "0" : "2026-01-31T12:00"} />`}
      <${Field} label="Topic" name="topic" placeholder="all" /><//>
    ${plan && html`<${Table} label="What would change" empty="Nothing" rows=${plan} columns=${[["Topic", (r) => r.topic, { cls: "name" }], ["Partition", (r) => r.partition, { num: true }],
      ["Now", (r) => count(r.from), { num: true }], ["Then", (r) => count(r.to), { num: true }], ["Moves by", (r) => (r.to > r.from ? "+" : "") + count(r.to - r.from), { num: true }], ["Lag then", (r) => count(r.end - r.to), { num: true }]]} />
      <${Action} title="Apply this reset" button=${"Reset " + plan.length + " partitions"} run=${apply} />`}
    <${Action} title="Delete this group" button="Delete with its offsets" danger run=${async (form) => { await ask("/group/delete", { id, confirm: form.confirm }); go("/groups"); }}>
      <${Field} label="Type its id to delete it" name="confirm" required /><//>`;
}

export function Group() {
  const id = query().get("id") || "";
  const { data, error } = useLive("/group?id=" + encodeURIComponent(id));
  return html`<${Crumbs} path=${[["/groups", "Groups"]]} title=${id || "(empty id)"} /><${Problem} text=${error || data?.error} />
    ${data && html`<div class="cards"><${Card} name="State" value=${html`<${Chip} text=${data.state} />`} /><${Card} name="Members" value=${count(data.members)} note=${data.assignor || "no assignor"} />
      <${Card} name="Lag" value=${count(data.lag)} note="records" /><${Card} name="Behind" value=${behind(data)} /><${Card} name="Records/s" value=${rate(data.rate)} />
      <${Card} name="Coordinator" value=${data.coordinator ?? "–"} /></div>`}
    <${Range} /><div class="charts"><${Chart} title="Lag in records" series=${"group.lag/" + id} /><${Chart} title="Lag in seconds" series=${"group.seconds/" + id} format=${age} /></div>
    <h2>Partitions</h2><${Table} label="Partitions" empty="Nothing committed" rows=${data?.partitionRows} columns=${[
      ["Topic", (p) => topicLink(p.topic), { cls: "name" }], ["Partition", (p) => p.partition, { num: true }], ["Offset", (p) => count(p.offset), { num: true }],
      ["Lag", (p) => count(p.lag), { num: true }], ["Behind", (p) => age(p.lagSeconds), { num: true }], ["Member", (p) => p.clientId ?? "–", { cls: "name" }]]} />
    <h2>Members</h2><${Table} label="Members" empty="No members" rows=${data?.memberRows} columns=${[
      ["Client", (m) => m.clientId, { cls: "name" }], ["Host", (m) => m.host], ["Member id", (m) => m.memberId, { cls: "name" }], ["Partitions", (m) => m.partitions.join(", ") || "–", { cls: "name" }]]} />
    ${canChange() && html`<${GroupActions} key=${id} id=${id} />`}`;
}
