// The cluster in one look: what is wrong and what to do, numbers, history.
import { html } from "/static/vendor/ui.js";
import { Card, Link, Loading, Problem, bytes, count, rate, useLive } from "/static/js/base.js";
import { Chart, Range } from "/static/js/lists.js";

export function Overview() {
  const { data, error } = useLive("/overview");
  if (!data) return html`<h1>Overview</h1><${Problem} text=${error} />${!error && html`<${Loading} />`}`;
  return html`<div class="head"><h1>Overview</h1><span class="soft">cluster ${data.clusterId || "…"}</span></div><${Problem} text=${error} />
    ${data.alarms > 0 && html`<div class="note bad" role="alert">${count(data.alarms)} alarms are firing: <${Link} to="/alarms">show them<//></div>`}
    ${data.problems.length ? data.problems.map((each) => html`<div class="note bad" role="alert"><b>${each.text}</b> ${each.hint}</div>`)
      : html`<div class="note good" role="status">${data.collectedAt ? "All is well: every partition has its leader and all replicas are in sync." : "Looking at the cluster …"}</div>`}
    <div class="cards"><${Card} name="Brokers" value=${count(data.brokers)} note=${"controller " + (data.controller ?? "none")} />
      <${Card} name="Topics" value=${count(data.topics)} note=${count(data.partitions) + " partitions"} />
      <${Card} name="Out of sync" value=${count(data.outOfSync)} bad=${data.outOfSync > 0} note=${count(data.offline) + " without leader"} /><${Card} name="Groups" value=${count(data.groups)} />
      <${Card} name="Records/s" value=${rate(data.rate)} note=${bytes(data.byteRate) + "/s"} /><${Card} name="Lag" value=${count(data.lag)} note="records, all groups" /><${Card} name="On disk" value=${bytes(data.sizeBytes)} note="all replicas" /></div>
    <${Range} /><div class="charts"><${Chart} title="Records per second" series="cluster.rate" format=${rate} /><${Chart} title="Lag of all groups" series="cluster.lag" /></div>`;
}
