// The sizing questions with the cluster's real rates: brokers, partitions, disk, memory.
import { html } from "/static/vendor/ui.js";
import { Card, Problem, bytes, count, go, query, rate, useLive, withQuery } from "/static/js/base.js";
import { Table, list } from "/static/js/lists.js";

// name, label, factor between what is typed and what is asked for, and where a first value comes from
const FIELDS = [["peak_records", "Records/s at the peak", 1, "peak of the last hour"], ["average_records", "Records/s on average", 1, "average of the last hour"], ["record_bytes", "Bytes per record", 1, "on disk, so compressed"],
  ["replicas", "Replicas", 1, "of the busiest topic"], ["retention_hours", "Kept for (hours)", 1, ""], ["headroom", "Free headroom (%)", 0.01, ""], ["broker_bytes", "One broker takes (MB/s)", 1e6, "measure: barnabas perf produce"],
  ["partition_bytes", "One partition takes (MB/s)", 1e6, "measure: barnabas perf produce"], ["consumer_bytes", "One consumer reads (MB/s)", 1e6, "measure: barnabas perf consume"], ["cached_seconds", "Cached for (seconds)", 1, "so that readers find it in memory"], ["broker_disk_bytes", "Disk per broker (GB)", 1e9, "0 is any"]];
const plain = (n) => String(Number(n.toPrecision(4)));

export function Capacity() {
  const { data, error } = useLive("/capacity" + list(), 5), now = query();
  return html`<h1>Capacity</h1><p class="soft">How large the cluster must be. Empty fields take what this cluster does now; the address keeps what you type.</p><${Problem} text=${error || data?.error} />
    ${data && html`<form class="fields" onSubmit=${(event) => event.preventDefault()}>${FIELDS.map(([name, label, factor, note]) => html`<label>${label}<input type="number" min="0" step="any" value=${now.has(name) ? plain(Number(now.get(name)) / factor) : ""} placeholder=${plain(data.load[name] / factor)}
      onInput=${(event) => go(withQuery({ [name]: event.target.value === "" ? "" : Number((Number(event.target.value) * factor).toPrecision(12)) }), true)} /><small class="soft">${note}</small></label>`)}</form>
    <div class="cards"><${Card} name="Brokers" value=${count(data.size.brokers)} note=${"now " + count(data.now.brokers)} /><${Card} name="Partitions" value=${count(data.size.partitions)} note="for a topic with this traffic" /><${Card} name="Disk" value=${bytes(data.size.disk_bytes)} note=${"now " + bytes(data.now.diskBytes)} />
      <${Card} name="Disk per broker" value=${bytes(data.size.disk_bytes_per_broker)} /><${Card} name="Page cache per broker" value=${bytes(data.size.cache_bytes_per_broker)} /></div>
    <h2>How this comes about</h2><${Table} label="How this comes about" empty="" rows=${[
      ["Written by all replicas at the peak", bytes(data.size.written_bytes) + "/s", `${rate(data.load.peak_records)} records/s × ${bytes(data.load.record_bytes)} × ${data.load.replicas}`],
      ["Brokers for the rate", count(data.size.brokers_for_rate), `${bytes(data.size.written_bytes)}/s over ${bytes(data.load.broker_bytes)}/s, of which ${Math.round(data.load.headroom * 100)} % stay free`],
      ["Brokers for the disk", count(data.size.brokers_for_disk), data.load.broker_disk_bytes ? `${bytes(data.size.disk_bytes)} over ${bytes(data.load.broker_disk_bytes)}` : "any disk size"],
      ["Brokers for the replicas", count(data.load.replicas), data.size.is_fewer_than_replicas ? "this decides: every replica needs a broker of its own" : "one broker per replica at least"],
      ["Partitions", count(data.size.partitions), `${bytes(data.load.peak_records * data.load.record_bytes)}/s over the lesser of ${bytes(data.load.partition_bytes)}/s and ${bytes(data.load.consumer_bytes)}/s, with headroom`],
      ["Disk", bytes(data.size.disk_bytes), `${rate(data.load.average_records)} records/s × ${bytes(data.load.record_bytes)} × ${data.load.retention_hours} h × ${data.load.replicas}, with headroom`],
      ["Page cache per broker", bytes(data.size.cache_bytes_per_broker), `what is written in ${data.load.cached_seconds} s, over the brokers`]]} columns=${[["What", (r) => r[0]], ["Needed", (r) => html`<b>${r[1]}</b>`, { num: true }], ["From", (r) => r[2], { cls: "name" }]]} />`}`;
}
