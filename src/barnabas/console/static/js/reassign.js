// The reassign wizard: what to move, to which brokers, a look at traffic and time, throttle, progress, cancel.
import { html, useEffect, useState } from "/static/vendor/ui.js";
import { Choice, Empty, Link, Meter, Problem, age, ask, bytes, canChange, count, go, query, useAction, useLive, withQuery } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";

const SHOWN = 200;
const KINDS = [["reassign", "chosen partitions"], ["drain", "everything off one broker"], ["balance", "whatever evens out the load"]];
const named = (row) => row.topic + "-" + row.partition;

function Running({ moves, onChange }) {
  const act = useAction();
  const copied = moves.items.reduce((sum, each) => sum + each.copiedBytes, 0), total = moves.items.reduce((sum, each) => sum + each.totalBytes, 0);
  if (!moves.total) return html`${act.say}${moves.throttle != null && html`<div class="note warn">A throttle of ${bytes(moves.throttle)}/s is still set, though nothing moves. ${canChange() && html`<button class="act" onClick=${() => act.run(async () => {
    await ask("/moves/unthrottle", {}); await onChange(); return "The throttle is gone."; })}>Remove it</button>`}</div>`}`;
  return html`<section class="card"><div class="head"><h2>${count(moves.total)} ${moves.total === 1 ? "partition is" : "partitions are"} moving</h2>${canChange() && html`<button class="act danger" disabled=${act.busy} onClick=${() => act.run(async () => {
      const done = await ask("/moves/cancel", {}); await onChange(); return `Cancelled: ${done.cancelled} partitions go back.`; })}>Cancel all moves</button>`}</div>${act.say}
    <${Meter} share=${total ? copied / total : 0} text=${`${bytes(copied)} of ${bytes(total)}${moves.throttle != null ? ", at most " + bytes(moves.throttle) + "/s per broker" : ""}`} label="Copied" />
    <${Table} label="Moves" empty="" rows=${moves.items} columns=${[["Partition", named, { cls: "name" }], ["Replicas", (m) => m.replicas.join(", ")], ["Added", (m) => m.adding.join(", ") || "–"], ["Removed", (m) => m.removing.join(", ") || "–"],
      ["Copied", (m) => html`<${Meter} share=${m.totalBytes ? m.copiedBytes / m.totalBytes : 0} text=${bytes(m.copiedBytes) + " of " + bytes(m.totalBytes)} label=${"Copied of " + named(m)} />`]]} /></section>`;
}

function Review({ plan, throttle, setThrottle, onBegin, busy }) {
  const limit = throttle > 0 ? throttle * 1e6 : null;
  if (!plan.moves.length) return html`<${Empty} title="Nothing has to move">The replicas are where they should be.<//>`;
  return html`<section class="card"><h2>3. Look at it</h2><p>${count(plan.moves.length)} partitions change, <b>${bytes(plan.bytes)}</b> are copied between brokers; the busiest broker copies ${bytes(plan.busiestBytes)}.</p>
    <${Table} label="Load of the brokers" empty="" rows=${plan.brokers} columns=${[["Broker", (b) => b.id, { num: true }], ...[["Replicas", "replicas", count], ["Leaders", "leaders", count], ["Size", "size", bytes]].map(([title, part, format]) =>
      [title, (b) => b.before[part] === b.after[part] ? format(b.after[part]) : html`${format(b.before[part])} → <b>${format(b.after[part])}</b>`, { num: true }])]} />
    <details><summary>The moves</summary><${Table} label="Planned moves" empty="" rows=${plan.moves.slice(0, SHOWN)} columns=${[["Partition", named, { cls: "name" }], ["Replicas now", (m) => m.from.join(", ")], ["Then", (m) => html`<b>${m.to.join(", ")}</b>`], ["To copy", (m) => bytes(m.sizeBytes), { num: true }]]} />
      ${plan.moves.length > SHOWN && html`<p class="soft">and ${count(plan.moves.length - SHOWN)} more</p>`}</details>
    <h2>4. Carry it out</h2><form class="bar" onSubmit=${(event) => { event.preventDefault(); onBegin(limit); }}><label>Throttle in MB/s per broker<input type="number" min="0" step="any" value=${throttle} onInput=${(event) => setThrottle(event.target.value)} placeholder="none" /></label>
      <button class="act main" disabled=${busy}>Move ${count(plan.moves.length)} partitions</button></form>
    <p class="soft" role="status">${limit ? `Takes about ${age(plan.busiestBytes / limit)} or longer.` : "Without a throttle the copies take what network and disks give, and producers may notice."} The throttle is removed when the moves are done.</p></section>`;
}

export function Reassign() {
  const live = useLive("/moves", 1.5), brokers = useLive("/brokers", 5).data?.items.filter((each) => each.state === "running");
  const now = query(), kind = now.get("kind") || "reassign", act = useAction();
  const [plan, setPlan] = useState(null), [throttle, setThrottle] = useState(""), [chosen, setChosen] = useState(null), [text, setText] = useState("");
  const targets = chosen || new Set(brokers?.map((each) => each.id)), from = Number(now.get("broker") ?? brokers?.[0]?.id);
  useEffect(() => { const kept = JSON.parse(sessionStorage.getItem("barnabas-move") || "[]"); setText(kept.map((each) => each.topic + ":" + each.partition).join("\n")); }, []);
  useEffect(() => setPlan(null), [kind, now.get("broker")]);
  const toggle = (id) => { const next = new Set(targets); next.has(id) ? next.delete(id) : next.add(id); setChosen(next); setPlan(null); };
  const show = (event) => {
    event.preventDefault(); setPlan(null);
    const names = text.split(/\s+/).filter(Boolean), body = { kind };
    if (kind === "drain") body.broker = from;
    if (kind === "reassign") {
      body.brokers = [...targets];
      const partitions = names.filter((each) => /:\d+$/.test(each));
      if (partitions.length === names.length) body.partitions = partitions.map((each) => ({ topic: each.slice(0, each.lastIndexOf(":")), partition: Number(each.slice(each.lastIndexOf(":") + 1)) }));
      else if (!partitions.length) body.topics = names;
    }
    act.run(async () => {
      if (kind === "reassign" && !body.partitions && !body.topics) throw new Error("Give either names of topics, or TOPIC:PARTITION throughout.");
      if (kind === "reassign" && !names.length) throw new Error("Choose partitions first.");
      setPlan(await ask("/moves/plan", body));
    });
  };
  const begin = (limit) => act.run(async () => {
    const done = await ask("/moves", { moves: plan.moves.map(({ topic, partition, to }) => ({ topic, partition, to })), throttle: limit && Math.round(limit) });
    sessionStorage.removeItem("barnabas-move"); setPlan(null); setText(""); await live.reload?.(); return `${count(done.moving)} partitions began to move.`; });
  return html`<h1>Reassign partitions</h1><${Problem} text=${live.error} />${live.data && html`<${Running} moves=${live.data} onChange=${live.reload} />`}
    ${canChange() ? html`${act.say}<form onSubmit=${show}><section class="card"><h2>1. What to move</h2><div class="bar"><${Choice} label="Move" value=${kind} options=${KINDS} onChange=${(event) => go(withQuery({ kind: event.target.value }), true)} />
        ${kind === "drain" && html`<${Choice} label="Broker" value=${from} options=${(brokers || []).map((each) => [each.id, each.id + " " + each.address])} onChange=${(event) => go(withQuery({ broker: event.target.value }), true)} />`}
        ${kind === "reassign" && html`<label class="whole">Topics, or TOPIC:PARTITION, one per line (<${Link} to="/partitions">choose them in the list<//>)<textarea rows="4" spellcheck="false" value=${text} onInput=${(event) => { setText(event.target.value); setPlan(null); }}></textarea></label>`}</div></section>
      ${kind === "reassign" && html`<fieldset class="card"><legend>2. To which brokers</legend><div class="bar">${(brokers || []).map((each) => html`<label class="tick"><input type="checkbox" checked=${targets.has(each.id)} onChange=${() => toggle(each.id)} />${each.id} ${each.address}${each.rack ? " in " + each.rack : ""}</label>`)}</div></fieldset>`}
      <p><button class="act main" disabled=${act.busy}>Make a plan</button></p></form>
      ${plan && html`<${Review} plan=${plan} throttle=${throttle} setThrottle=${setThrottle} onBegin=${begin} busy=${act.busy} />`}` : live.data && !live.data.total && html`<${Empty} title="Nothing moves" />`}`;
}
