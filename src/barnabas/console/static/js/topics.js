// The list of topics.
import { html } from "/static/vendor/ui.js";
import { Action, Field, Problem, ask, behind, bytes, canChange, count, go, query, rate, topicLink, topicPath, useLive, withQuery } from "/static/js/base.js";
import { Filter, Pages, Table, list } from "/static/js/lists.js";

const Create = () => html`<${Action} title="Create a topic" button="Create" run=${async (form) => {
  const body = { name: form.name };
  for (const key of ["partitions", "replicas"]) if (form[key]) body[key] = Number(form[key]);
  await ask("/topics", body); go(topicPath(form.name)); }}>
  <${Field} label="Name" name="name" required /><${Field} label="Partitions" name="partitions" type="number" min="1" placeholder="default" />
  <${Field} label="Replicas" name="replicas" type="number" min="1" placeholder="default" /><//>`;

export function Topics() {
  const { data, error } = useLive("/topics" + list());
  return html`<h1>Topics</h1><${Problem} text=${error || data?.error} />${canChange() && html`<${Create} />`}
    <div class="bar"><${Filter} label="Filter by name" /><label class="tick"><input type="checkbox" checked=${query().get("internal") === "1"}
      onChange=${(event) => go(withQuery({ internal: event.target.checked ? "1" : "", page: "" }), true)} />Internal topics</label></div>
    <${Table} label="Topics" id=${(t) => t.name} rows=${data?.items} empty=${query().get("filter") ? "No topic matches the filter" : "There are no topics yet: create one, or let a producer do so"} columns=${[
      ["Name", (t) => topicLink(t.name), { sort: "name", cls: "name" }], ["Partitions", (t) => count(t.partitions), { sort: "partitions", num: true }],
      ["Replicas", (t) => t.replicas, { sort: "replicas", num: true }], ["Out of sync", (t) => t.outOfSync ? html`<b class="bad">${count(t.outOfSync)}</b>` : "–", { sort: "outOfSync", num: true }],
      ["Records", (t) => count(t.records), { sort: "records", num: true }], ["Size", (t) => bytes(t.sizeBytes), { sort: "sizeBytes", num: true }],
      ["Records/s", (t) => rate(t.rate), { sort: "rate", num: true }], ["Lag", (t) => t.groups ? count(t.lag) : "–", { sort: "lag", num: true }],
      ["Behind", (t) => t.groups ? behind(t) : "–", { sort: "lagSeconds", num: true }]]} /><${Pages} data=${data} />`;
}
