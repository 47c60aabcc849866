// Who is logged in, at the end of the navigation. Nothing where nobody has to.
import { html } from "/static/vendor/ui.js";
import { ask, session } from "/static/js/base.js";

export const Account = () => session.value.user && html`<div class="account"><span>${session.value.user}${
  session.value.readOnly ? " (may look only)" : ""}</span><button class="act" onClick=${async () => {
  try { await ask("/logout", {}); } finally { location.assign("/login"); } }}>Log out</button></div>`;
