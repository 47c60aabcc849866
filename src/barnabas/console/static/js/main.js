import { html, render, useEffect } from "/static/vendor/ui.js";
import { Link, ask, place, session } from "/static/js/base.js";
import { Brokers, Group, Groups, Overview, Topic, Topics } from "/static/js/pages.js";
import { Account } from "/static/js/account.js";
import { Alarms } from "/static/js/alarms.js";

const MENU = [["/", "Overview"], ["/topics", "Topics"], ["/groups", "Groups"], ["/brokers", "Brokers"], ["/alarms", "Alarms"]];
const PAGES = { "/": Overview, "/topics": Topics, "/groups": Groups, "/group": Group, "/brokers": Brokers, "/alarms": Alarms };

function App() {
  const path = place.value.split("?")[0];
  const here = "/" + (path.split("/")[1] || "");
  useEffect(() => { document.title = (MENU.find(([to]) => to === here)?.[1] || "Group") + " – Barnabas"; }, [here]);
  const name = path.startsWith("/topics/") ? decodeURIComponent(path.slice(8)) : null;
  return html`<div class="shell"><nav aria-label="Pages"><strong>Barnabas</strong>${MENU.map(([to, title]) => html`<${Link} to=${to}
    aria-current=${to === here || (to === "/groups" && here === "/group") ? "page" : null}>${title}<//>`)}<${Account} /></nav>
    <main>${name !== null ? html`<${Topic} key=${name} name=${name} />` : html`<${PAGES[path] || Overview} key=${path} />`}</main></div>`;
}

ask("/session").then((found) => {
  session.value = found;
  const root = document.getElementById("app");
  root.replaceChildren();
  render(html`<${App} />`, root);
}, (error) => { document.getElementById("app").textContent = error.message; });
