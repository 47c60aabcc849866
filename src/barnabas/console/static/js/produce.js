// A record written by hand.
import { html } from "/static/vendor/ui.js";
import { Action, Field, ask, topicPath } from "/static/js/base.js";

// Headers are lines of "name: value".
const headersOf = (text) => (text || "").split("\n").filter((line) => line.trim()).map((line) => {
  const at = line.indexOf(":");
  if (at < 1) throw new Error(`A header is NAME: VALUE, not ${line}`);
  return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
});

export const Produce = ({ name }) => html`<${Action} title="Produce a message" button="Produce" run=${async (form) => {
    const at = await ask(topicPath(name) + "/produce", { key: form.key || null, value: form.none ? null : form.value,
      partition: form.partition === "" ? null : Number(form.partition), headers: headersOf(form.headers) });
    return `Written to partition ${at.partition} at offset ${at.offset}.`; }}>
    <${Field} label="Key" name="key" /><${Field} label="Partition" name="partition" type="number" min="0" placeholder="by the key" />
    <label class="tick"><input type="checkbox" name="none" />No value (null)</label>
    <label class="whole">Value<textarea name="value" rows="4" spellcheck="false"></textarea></label><label class="whole">Headers, one NAME: VALUE per line<textarea name="headers" rows="2" spellcheck="false"></textarea></label><//>`;
