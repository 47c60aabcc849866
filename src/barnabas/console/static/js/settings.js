// Settings of a topic or a broker: value, default, documentation, where a value comes from; edited in place.
import { html, useState } from "/static/vendor/ui.js";
import { Chip, Problem, ask, canChange, useAction, useLive } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";

const SOURCES = { DYNAMIC_TOPIC_CONFIG: "this topic", DYNAMIC_BROKER_CONFIG: "this broker", DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers", STATIC_BROKER_CONFIG: "broker's file",
  DEFAULT_CONFIG: "default", DYNAMIC_GROUP_CONFIG: "this group" };

function Value({ setting, onSave }) {
  const [text, set] = useState(null);
  const shown = setting.isSensitive ? "" : setting.value ?? "";
  if (!canChange() || setting.isReadOnly) return setting.isSensitive ? html`<span class="soft">hidden</span>` : shown;
  const save = async (event) => { event.preventDefault(); if (await onSave(text)) set(null); };
  return html`<form class="inline" onSubmit=${save}>${setting.type === "BOOLEAN"
    ? html`<select aria-label=${setting.name} onChange=${(event) => set(event.target.value)}>${["true", "false"].map((each) => html`<option value=${each} selected=${(text ?? shown) === each}>${each}</option>`)}</select>`
    : html`<input aria-label=${setting.name} value=${text ?? shown} placeholder=${setting.isSensitive ? "hidden" : ""} spellcheck="false" autocomplete="off" onInput=${(event) => set(event.target.value)} />`}
    ${text !== null && text !== shown && html`<button class="act main">Save</button><button type="button" class="act" onClick=${() => set(null)}>Undo</button>`}</form>`;
}

export function Settings({ path, own }) {
  const { data, error, reload } = useLive(path, 10);
  const [filter, setFilter] = useState(""), [changed, setChanged] = useState(false), act = useAction();
  const change = (name, value) => act.run(async () => {
    await ask(path, { name, value }); await reload(); return value == null ? name + " is back to its default." : name + " is " + value + " now."; });
  const rows = data?.items.filter((each) => (each.name + " " + (each.documentation || "")).toLowerCase().includes(filter.toLowerCase()) && (!changed || own.includes(each.source)));
  return html`<${Problem} text=${error} />${act.say}<div class="bar"><label class="wide">Filter settings<input type="search" data-filter placeholder="Name or description ( / )" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></label>
    <label class="tick"><input type="checkbox" checked=${changed} onChange=${(event) => setChanged(event.target.checked)} />Only what is set here</label></div>
    <${Table} label="Settings" empty="No such settings" rows=${rows} id=${(s) => s.name} columns=${[
    ["Setting", (s) => html`<b>${s.name}</b><div class="soft small">${s.documentation}</div>`, { cls: "name" }],
    ["Value", (s) => html`<${Value} setting=${s} onSave=${(value) => change(s.name, value)} />`, { cls: "setting" }],
    ["From", (s) => html`<${Chip} text=${SOURCES[s.source] || s.source} kind=${own.includes(s.source) ? "warn" : ""} />`],
    ["Default", (s) => s.default ?? "–", { cls: "name" }], ["", (s) => own.includes(s.source) && canChange() && html`<button class="act" aria-label=${"Reset " + s.name} onClick=${() => change(s.name, null)}>Reset</button>`]]} />`;
}
