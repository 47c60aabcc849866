// Users with a SCRAM password, access rules, quotas.
import { html } from "/static/vendor/ui.js";
import { Action, Chip, Choice, Empty, Field, Problem, ask, bytes, canChange, count, useAction, useLive } from "/static/js/base.js";
import { Filter, Pages, Table, list } from "/static/js/lists.js";

const MECHANISMS = ["SCRAM-SHA-512", "SCRAM-SHA-256"];
const words = (name) => name.toLowerCase().replaceAll("_", " ");
const Missing = ({ text }) => html`<${Empty} title="This cluster has none of these">${text}<//>`;

export function Users() {
  const { data, error, reload } = useLive("/users" + list(), 5), act = useAction();
  const remove = (each) => confirm(`Delete the ${each.mechanism} password of ${each.user}?`) && act.run(async () => { await ask("/users/delete", { user: each.user, mechanism: each.mechanism }); await reload(); return each.user + " is deleted."; });
  return html`<h1>Users</h1><${Problem} text=${error} />${act.say}${data?.notOffered ? html`<${Missing} text=${data.notOffered} />` : html`
    ${canChange() && html`<${Action} title="Add a user, or set a new password" button="Save" run=${async (form, element) => {
      await ask("/users", { user: form.user, password: form.password, mechanism: form.mechanism, iterations: Number(form.iterations) }); element.reset(); await reload(); return form.user + " can log in with the new password."; }}>
      <${Field} label="User" name="user" required /><${Field} label="Password" name="password" type="password" required autocomplete="new-password" />
      <${Choice} label="Mechanism" name="mechanism" options=${MECHANISMS} /><${Field} label="Iterations" name="iterations" type="number" min="4096" max="16384" value="8192" /><//>`}
    <div class="bar"><${Filter} label="Filter by name" /></div><${Table} label="Users" empty="No user has a SCRAM password" id=${(u) => u.user + u.mechanism} rows=${data?.items} columns=${[["User", (u) => u.user, { cls: "name", sort: "name" }], ["Mechanism", (u) => u.mechanism],
      ["Iterations", (u) => count(u.iterations), { num: true }], ["", (u) => canChange() && html`<button class="act danger" aria-label=${"Delete " + u.user + " " + u.mechanism} onClick=${() => remove(u)}>Delete</button>`]]} /><${Pages} data=${data} />`}`;
}

// Of the whole cluster, or those that apply to one topic.
export function Rules({ path, topic }) {
  const { data, error, reload } = useLive(path + list(), 5), act = useAction();
  const remove = (each) => confirm("Delete this rule?") && act.run(async () => { await ask("/acls/delete", each); await reload(); return "The rule is gone."; });
  if (data?.notOffered) return html`<${Missing} text=${data.notOffered} />`;
  return html`<${Problem} text=${error} />${act.say}${data && canChange() && html`<${Action} title="Add a rule" button="Add" run=${async (form) => { await ask("/acls", topic ? { ...form, resourceType: "TOPIC" } : form); await reload(); return "The rule is in force."; }}>
      <${Choice} label="Permission" name="permission" value="ALLOW" options=${data.permissions.map((each) => [each, words(each)])} /><${Field} label="Principal" name="principal" required placeholder="User:alice" />
      <${Choice} label="Operation" name="operation" options=${data.operations.map((each) => [each, words(each)])} />${!topic && html`<${Choice} label="On" name="resourceType" options=${data.resourceTypes.map((each) => [each, words(each)])} />`}
      <${Choice} label="Names" name="patternType" options=${[["LITERAL", "this name"], ["PREFIXED", "that begin with"]]} /><${Field} label="Name" name="resourceName" required value=${topic || undefined} placeholder="* is all" /><${Field} label="From host" name="host" required value="*" /><//>`}
    <div class="bar"><${Filter} label="Filter rules" /></div><${Table} label="Rules" empty=${topic ? "No rule names this topic" : "There are no rules"} rows=${data?.items} columns=${[["Permission", (r) => html`<${Chip} text=${r.permission} />`, { sort: "permission" }], ["Principal", (r) => r.principal, { cls: "name", sort: "principal" }],
      ["Operation", (r) => words(r.operation), { sort: "operation" }], ["On", (r) => html`${words(r.resourceType)} <b>${r.resourceName}</b>${r.patternType === "PREFIXED" && html` <span class="soft">and what begins with it</span>`}`, { cls: "name", sort: "name" }], ["Host", (r) => r.host],
      ["", (r) => canChange() && html`<button class="act danger" aria-label=${"Delete the rule of " + r.principal} onClick=${() => remove(r)}>Delete</button>`]]} /><${Pages} data=${data} />`;
}
export const Acls = () => html`<h1>Access rules</h1><${Rules} path="/acls" />`;

const amount = (name, value) => name.endsWith("byte_rate") ? bytes(value) + "/s" : name === "request_percentage" ? value + " %" : count(value) + "/s";
const whom = (row) => [["user", row.user], ["client", row.clientId], ["address", row.ip]].filter(([, name]) => name != null)
  .map(([kind, name]) => html`<span class="soft">${kind}</span> ${name === "" ? html`<i>every other</i>` : html`<b>${name}</b>`} `);

export function Quotas() {
  const { data, error, reload } = useLive("/quotas" + list(), 5), act = useAction();
  const entity = (form) => Object.fromEntries(["user", "clientId", "ip"].map((part) => [part, form[part + "Default"] ? "" : form[part] || null]));
  const remove = (row, name) => act.run(async () => { await ask("/quotas", { user: row.user, clientId: row.clientId, ip: row.ip, values: { [name]: null } }); await reload(); return "The quota is gone."; });
  return html`<h1>Quotas</h1><${Problem} text=${error} />${act.say}${data?.notOffered ? html`<${Missing} text=${data.notOffered} />` : html`
    ${data && canChange() && html`<${Action} title="Set a quota" button="Set" run=${async (form) => { await ask("/quotas", { ...entity(form), values: { [form.name]: Number(form.value) } }); await reload(); return "The quota is in force."; }}>
      <${Field} label="User" name="user" /><label class="tick"><input type="checkbox" name="userDefault" />every other user</label><${Field} label="Client id" name="clientId" /><label class="tick"><input type="checkbox" name="clientIdDefault" />every other client</label>
      <${Field} label="Address" name="ip" /><${Choice} label="Quota" name="name" options=${data.names.map((each) => [each, words(each)])} /><${Field} label="Number" name="value" type="number" min="0" step="any" required /><//>`}
    <div class="bar"><${Filter} label="Filter by name" /></div><${Table} label="Quotas" empty="Nobody has a quota" rows=${data?.items} columns=${[["For", whom, { cls: "name", sort: "name" }], ["Quotas", (row) => Object.entries(row.values).map(([name, value]) =>
      html`<div class="quota"><span>${words(name)}: <b>${amount(name, value)}</b></span>${canChange() && html`<button class="act danger" aria-label=${"Remove " + words(name)} onClick=${() => remove(row, name)}>Remove</button>`}</div>`)]]} /><${Pages} data=${data} />`}`;
}
