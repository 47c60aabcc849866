// Transactions: what coordinators know, what hangs in partitions, and ending either.
import { html, useState } from "/static/vendor/ui.js";
import { Choice, Chip, Drawer, Field, Action, Problem, age, ask, canChange, count, go, query, topicLink, useAction, useLive, withQuery } from "/static/js/base.js";
import { Filter, Pages, Table, list } from "/static/js/lists.js";

const STATES = ["", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Empty", "Dead"].map((each) => [each, each || "any"]);

function Hanging() {
  const [minutes, setMinutes] = useState("15"), [found, set] = useState(null), act = useAction();
  const search = () => act.run(async () => { set((await ask("/transactions/hanging?minutes=" + minutes)).items); });
  const abort = (each) => act.run(async () => { await ask("/transactions/abort", { topic: each.topic, partition: each.partition, startOffset: each.startOffset });
    set(found.filter((other) => other !== each)); return `Aborted in ${each.topic}-${each.partition}.`; });
  return html`<h2>Hanging transactions</h2><p class="soft">Open in a partition, though no coordinator will ever end them: readers of committed records wait there.</p>${act.say}
    <form class="bar" onSubmit=${(event) => { event.preventDefault(); search(); }}><label>Open for more than (minutes)<input type="number" min="0" value=${minutes} onInput=${(event) => setMinutes(event.target.value)} /></label><button class="act main" disabled=${act.busy}>Search all partitions</button></form>
    ${found && html`<${Table} label="Hanging transactions" empty="None: every open transaction is known to its coordinator" rows=${found} columns=${[["Partition", (t) => html`${topicLink(t.topic)} ${t.partition}`, { cls: "name" }], ["From offset", (t) => count(t.startOffset), { num: true }],
      ["Producer id", (t) => t.producerId, { num: true }], ["Transactional id", (t) => t.transactionalId ?? "nobody uses it", { cls: "name" }], ["Silent for", (t) => age(t.ageSeconds), { num: true }],
      ["", (t) => canChange() && html`<button class="act danger" disabled=${act.busy} onClick=${() => abort(t)}>Abort</button>`]]} />`}`;
}

export function Transactions() {
  const { data, error } = useLive("/transactions" + list(), 3), [open, setOpen] = useState(null);
  const shown = open && data?.items.find((each) => each.transactionalId === open);
  return html`<h1>Transactions</h1><${Problem} text=${error || data?.error} /><div class="bar"><${Filter} label="Filter by transactional id" />
      <${Choice} label="State" value=${query().get("state") || ""} options=${STATES} onChange=${(event) => go(withQuery({ state: event.target.value, page: "" }), true)} /></div>
    <${Table} label="Transactions" empty="No transactional ids are known" id=${(t) => t.transactionalId} rows=${data?.items} columns=${[
      ["Transactional id", (t) => html`<button class="link" onClick=${() => setOpen(t.transactionalId)}>${t.transactionalId}</button>`, { sort: "name", cls: "name" }], ["State", (t) => html`<${Chip} text=${t.state} />`, { sort: "state" }],
      ["Open for", (t) => age(t.ageSeconds), { num: true }], ["Partitions", (t) => count(t.partitionCount), { num: true }], ["Producer id", (t) => t.producerId, { sort: "producerId", num: true }], ["Epoch", (t) => t.producerEpoch ?? "–", { num: true }],
      ["Time-out", (t) => t.timeoutMs == null ? "–" : age(t.timeoutMs / 1000), { num: true }], ["Coordinator", (t) => t.coordinator, { num: true }]]} /><${Pages} data=${data} />
    ${shown && html`<${Drawer} title=${"Transaction " + shown.transactionalId} onClose=${() => setOpen(null)}><p><${Chip} text=${shown.state} /> ${shown.ageSeconds == null ? "" : "open for " + age(shown.ageSeconds)}</p>
      <h3>Partitions</h3>${shown.partitions.length ? html`<ul>${shown.partitions.map((each) => html`<li>${each}</li>`)}</ul>` : html`<p class="soft">none</p>`}
      ${canChange() && html`<${Action} title="Fence the producer" button="Fence" danger run=${async (form) => { await ask("/transactions/fence", { id: shown.transactionalId, confirm: form.confirm }); return "Whoever used it is shut out; what was open is aborted."; }}>
        <${Field} label="Type the transactional id" name="confirm" required /><//>`}<//>`}
    <${Hanging} />`;
}
