// Alarms: what is firing, silence, history, rules, channels.
import { html } from "/static/vendor/ui.js";
import { Chip, Problem, age, ask, canChange, rate, useAction, useLive, when } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";

const moment = (seconds) => when(seconds * 1000).slice(0, 19);

export function Alarms() {
  const { data, error } = useLive("/alarms");
  const act = useAction();
  const silence = (each, minutes) => act.run(async () => { await ask("/alarms/silence", { rule: each.rule, subject: each.subject, minutes }); return minutes ? "Silent for an hour." : "The silence is over."; });
  return html`<h1>Alarms</h1><${Problem} text=${error} />${act.say}
    <h2>Firing</h2><${Table} label="Firing" empty="Nothing is firing" rows=${data?.firing} columns=${[
      ["Alarm", (a) => a.rule, { cls: "name" }], ["About", (a) => a.subject, { cls: "name" }], ["Value", (a) => rate(a.value), { num: true }],
      ["Limit", (a) => rate(a.limit), { num: true }], ["Meaning", (a) => a.meaning], ["Since (UTC)", (a) => moment(a.since), { cls: "time" }],
      ["", (a) => canChange() && (a.isSilenced ? html`<button class="act" onClick=${() => silence(a, 0)}>End silence</button>`
        : html`<button class="act" onClick=${() => silence(a, 60)}>Silence for 1 h</button>`)]]} />
    <h2>Channels</h2><${Table} label="Channels" empty="None: barnabas console --alarms FILE names them" rows=${data?.channels} columns=${[
      ["Kind", (c) => c.kind], ["Place", (c) => c.place, { cls: "name" }], ["Last fault", (c) => c.lastError ?? "–", { cls: "name" }]]} />
    <h2>History</h2><${Table} label="History" empty="Nothing yet" rows=${data?.events} columns=${[
      ["Time (UTC)", (e) => moment(e.at), { cls: "time" }], ["", (e) => html`<${Chip} text=${e.event} />`], ["Text", (e) => e.text, { cls: "name" }]]} />
    <h2>Rules</h2><${Table} label="Rules" empty="None" rows=${data?.rules} columns=${[
      ["Name", (r) => r.name, { cls: "name" }], ["Applies to", (r) => r.match, { cls: "name" }], ["Fires when", (r) => r.meaning + " > " + rate(r.above)],
      ["Clears at", (r) => rate(r.clear), { num: true }], ["After", (r) => age(r.for), { num: true }]]} />`;
}
