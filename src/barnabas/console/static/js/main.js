// The frame: menu, health, colour scheme, keys; and which page an address is.
import { html, render, useEffect, useState } from "/static/vendor/ui.js";
import { Link, ask, place, session, useLive } from "/static/js/base.js";
import { Icon } from "/static/js/icons.js";
import { Account } from "/static/js/account.js";
import { Overview } from "/static/js/overview.js";
import { Topics } from "/static/js/topics.js";
import { Topic } from "/static/js/topic.js";
import { Group, Groups } from "/static/js/groups.js";
import { Broker, Brokers } from "/static/js/brokers.js";
import { Partitions } from "/static/js/partitions.js";
import { Reassign } from "/static/js/reassign.js";
import { Transactions } from "/static/js/transactions.js";
import { Acls, Quotas, Users } from "/static/js/users.js";
import { Pipeline } from "/static/js/pipeline.js";
import { Capacity } from "/static/js/capacity.js";
import { Alarms } from "/static/js/alarms.js";

const MENU = [["", [["/", "Overview"], ["/topics", "Topics"], ["/groups", "Groups"], ["/pipeline", "Pipeline"], ["/alarms", "Alarms"]]],
  ["Cluster", [["/brokers", "Brokers"], ["/partitions", "Partitions"], ["/reassign", "Reassign"], ["/transactions", "Transactions"], ["/capacity", "Capacity"]]],
  ["Access", [["/users", "Users"], ["/acls", "ACLs"], ["/quotas", "Quotas"]]]];
const PAGES = { "/": Overview, "/topics": Topics, "/groups": Groups, "/group": Group, "/brokers": Brokers, "/partitions": Partitions, "/reassign": Reassign,
  "/transactions": Transactions, "/users": Users, "/acls": Acls, "/quotas": Quotas, "/pipeline": Pipeline, "/capacity": Capacity, "/alarms": Alarms };
const KEPT = "barnabas-scheme";
const scheme = (name) => name === "auto" ? document.documentElement.removeAttribute("data-scheme") : document.documentElement.setAttribute("data-scheme", name);

function Scheme() {
  const [now, set] = useState(localStorage.getItem(KEPT) || "auto");
  return html`<label class="scheme"><span>Colours</span><select value=${now} onChange=${(event) => {
    set(event.target.value); localStorage.setItem(KEPT, event.target.value); scheme(event.target.value); dispatchEvent(new Event("resize")); }}>
    ${["auto", "light", "dark"].map((each) => html`<option value=${each}>${each}</option>`)}</select></label>`;
}

function Health() {
  const { data, error } = useLive("/overview", 5);
  const bad = error || data?.error || data?.problems.length, text = error || data?.error ? "no connection" : data?.problems.length ? "problems" : data?.alarms ? "alarms" : "healthy";
  return html`<${Link} to=${data?.alarms && !bad ? "/alarms" : "/"} class="health"><i class=${"dot " + (!data ? "" : bad ? "bad" : data.alarms ? "warn" : "good")}></i><span>${session.value.bootstrap}<small>${data ? text : "…"}</small></span><//>`;
}

const plain = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
function page(path) {
  if (path.startsWith("/topics/")) { const name = plain(path.slice(8)); return html`<${Topic} key=${name} name=${name} />`; }
  if (path.startsWith("/brokers/")) { const id = plain(path.slice(9)); return html`<${Broker} key=${id} id=${id} />`; }
  return html`<${PAGES[path] || Overview} key=${path} />`;
}

function App() {
  const [open, setOpen] = useState(false);
  const path = place.value.split("?")[0], first = "/" + (path.split("/")[1] || ""), here = first === "/group" ? "/groups" : first;
  const title = MENU.flatMap(([, pages]) => pages).find(([to]) => to === here)?.[1] || "Overview";
  useEffect(() => { document.title = (path.split("/")[2] ? plain(path.split("/")[2]) + " – " : "") + title + " – Barnabas"; setOpen(false); }, [path]);
  return html`<a class="skip" href="#main">Skip to the page</a><div class="shell"><header class="side"><div class="brand"><${Icon} name="logo" /><strong>Barnabas</strong>
      <button class="act menu" aria-expanded=${open} aria-controls="menu" onClick=${() => setOpen(!open)}>Menu</button></div>
    <nav id="menu" aria-label="Pages" class=${open ? "open" : ""}>${MENU.map(([group, pages]) => html`${group && html`<p>${group}</p>`}${pages.map(([to, name]) => html`<${Link} to=${to}
      aria-current=${to === here ? "page" : null}><${Icon} name=${name} />${name}<//>`)}`)}<div class="foot"><${Health} />${session.value.readOnly && html`<span class="chip warn">read-only</span>`}<${Account} /><${Scheme} /></div></nav></header>
    <main id="main" tabindex="-1">${page(path)}</main></div>`;
}

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
  const field = document.querySelector("[data-filter]");
  if (field) { event.preventDefault(); field.focus(); field.select(); }
});
scheme(localStorage.getItem(KEPT) || "auto");
ask("/session").then((found) => {
  session.value = found;
  const root = document.getElementById("app");
  root.replaceChildren();
  render(html`<${App} />`, root);
}, (error) => { document.getElementById("app").textContent = error.message; });
