// Sizes of keys and values, and what a record takes on disk.
import { html, useState } from "/static/vendor/ui.js";
import { Card, Empty, Loading, Meter, Problem, bytes, count, topicPath, useLive, when } from "/static/js/base.js";
import { Table } from "/static/js/lists.js";

const SAMPLES = [1000, 5000, 20000, 50000];
const ratio = (data) => data.storedPerRecord && data.payloadPerRecord ? data.payloadPerRecord / data.storedPerRecord : null;

export function Statistics({ name }) {
  const [sample, set] = useState(5000);
  const { data, error } = useLive(topicPath(name) + "/statistics?sample=" + sample, 0);
  const most = data ? Math.max(1, ...data.histogram.map((each) => each.records)) : 1;
  return html`<div class="bar"><label>Newest records<select value=${sample} onChange=${(event) => set(Number(event.target.value))}>${SAMPLES.map((each) => html`<option value=${each}>${count(each)}</option>`)}</select></label></div>
    <${Problem} text=${error} />${!data && !error && html`<${Loading} />`}${data && !data.records && html`<${Empty} title="There are no records yet">Sizes are measured on the newest records.<//>`}
    ${data?.records > 0 && html`<div class="cards"><${Card} name="Sample" value=${count(data.records)} note="records" /><${Card} name="Different keys" value=${count(data.keys)} note=${count(data.nullKeys) + " without key"} />
      <${Card} name="Without value" value=${count(data.nullValues)} /><${Card} name="Headers" value=${data.headers.toFixed(1)} note="per record" />
      <${Card} name="Key and value" value=${bytes(data.payloadPerRecord)} note="per record" /><${Card} name="On disk" value=${bytes(data.storedPerRecord)} note="per record and replica" />
      <${Card} name="Compression" value=${ratio(data) ? ratio(data).toFixed(1) + " : 1" : "–"} note="payload : disk" /></div>
    <p class="soft">From ${when(data.oldest)} to ${when(data.newest)} UTC.</p>
    <h2>Sizes in bytes</h2><${Table} label="Sizes" empty="None" rows=${[["Key", data.key], ["Value", data.value]].filter(([, each]) => each)} columns=${[
      ["Part", (row) => row[0]], ...["min", "p50", "mean", "p95", "p99", "max"].map((each) => [each, (row) => count(row[1][each]), { num: true }])]} />
    <h2>Values by size</h2><${Table} label="Values by size" empty="No values" rows=${data.histogram} columns=${[["Size", (row) => "below " + bytes(row.below)],
      ["Records", (row) => html`<${Meter} share=${row.records / most} text=${count(row.records)} label=${"below " + bytes(row.below)} />`]]} />`}`;
}
