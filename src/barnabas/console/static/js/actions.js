// Forms that change something beside settings: clone, empty, produce; reset and delete a group.
import { html, useState } from "/static/vendor/ui.js";
import { Problem, Table, ask, count, go } from "/static/js/base.js";

// A form in a fold; `run` gets its fields and returns what to say.
export function Action({ title, button, run, children }) {
  const [fault, setFault] = useState(""), [done, setDone] = useState("");
  const submit = async (event) => {
    event.preventDefault(); setFault(""); setDone("");
    try { setDone(await run(Object.fromEntries(new FormData(event.target))) || ""); } catch (error) { setFault(error.message); }
  };
  return html`<details class="note"><summary>${title}</summary><${Problem} text=${fault} />${done && html`<p role="status">${done}</p>`}
    <form class="bar" onSubmit=${submit}>${children}<button class="act">${button}</button></form></details>`;
}

export function TopicActions({ name }) {
  const path = "/topics/" + encodeURIComponent(name);
  return html`<${Action} title="Clone this topic" button="Clone" run=${async (form) => {
    await ask(path + "/clone", { name: form.name }); go("/topics/" + encodeURIComponent(form.name)); }}>
      <label>New name<input name="name" required autocomplete="off" /></label><//>
    <${Action} title="Empty this topic" button="Delete all records" run=${async (form) => {
      await ask(path + "/empty", { confirm: form.confirm }); return "It is empty."; }}>
      <label>Type its name to empty it<input name="confirm" required autocomplete="off" /></label><//>`;
}

export function Produce({ name }) {
  return html`<${Action} title="Produce a message" button="Produce" run=${async (form) => {
    const headers = form.header ? [[form.header, form.headerValue]] : [];
    const at = await ask("/topics/" + encodeURIComponent(name) + "/produce", { key: form.key || null, value: form.none ? null : form.value,
      partition: form.partition === "" ? null : Number(form.partition), headers });
    return `Written to partition ${at.partition} at offset ${at.offset}.`; }}>
    <label>Key<input name="key" autocomplete="off" /></label><label class="wide">Value<textarea name="value" rows="3"></textarea></label>
    <label>No value (null)<input type="checkbox" name="none" /></label><label>Into partition<input name="partition" type="number" min="0" placeholder="any" /></label>
    <label>Header name<input name="header" autocomplete="off" /></label><label>Header value<input name="headerValue" autocomplete="off" /></label><//>`;
}

export function GroupActions({ id }) {
  const [plan, setPlan] = useState(null);
  const show = async (form) => {
    setPlan(null);
    const given = form.value || "0", asTime = /^\d+$/.test(given) ? given : String(Date.parse(given + (/(Z|[+-]\d\d:\d\d)$/.test(given) ? "" : "Z")));
    if (form.to === "time" && asTime === "NaN") throw new Error("This is not a time.");
    const value = form.to === "time" ? asTime : form.to === "offset" ? given : "0";
    setPlan((await ask("/group/plan?" + new URLSearchParams({ id, to: form.to, value, topic: form.topic }))).items);
  };
  const apply = async () => {
    await ask("/group/offsets", { id, offsets: plan.map((row) => ({ topic: row.topic, partition: row.partition, offset: row.to })) });
    setPlan(null); return "The offsets have been reset.";
  };
  return html`<${Action} title="Reset offsets" button="Show what would change" run=${show}>
      <label>To<select name="to"><option value="earliest">the oldest records</option><option value="latest">the end</option><option value="offset">an offset</option><option value="time">a time</option></select></label>
      <label>Offset or time (UTC)<input name="value" placeholder="2026-01-31T12:00" autocomplete="off" /></label><label>Topic<input name="topic" placeholder="all" autocomplete="off" /></label><//>
    ${plan && html`<${Table} label="What would change" empty="Nothing" rows=${plan} columns=${[["Topic", (r) => r.topic, { cls: "name" }], ["Partition", (r) => r.partition, { num: true }],
      ["Now", (r) => count(r.from), { num: true }], ["Then", (r) => count(r.to), { num: true }], ["Lag then", (r) => count(r.end - r.to), { num: true }]]} />
      <br /><${Action} title="Apply this reset" button=${"Reset " + plan.length + " partitions"} run=${apply} />`}
    <${Action} title="Delete this group" button="Delete with its offsets" run=${async (form) => { await ask("/group/delete", { id, confirm: form.confirm }); go("/groups"); }}>
      <label>Type its id to delete it<input name="confirm" required autocomplete="off" /></label><//>`;
}
