// The login page: shows nothing of the cluster, and leads to where the visitor came from.
const form = document.getElementById("login"), fault = document.getElementById("fault");
// A path of this console only: another site could have made the link.
const wanted = new URLSearchParams(location.search).get("to") || "/";
const to = /^\/(?![/\\])/.test(wanted) && new URL(wanted, location.origin).origin === location.origin ? wanted : "/";
const show = (text) => { fault.textContent = text; fault.hidden = !text; };

const session = async () => (await fetch("/api/session")).json();
session().then((found) => { if (!found.needsLogin || found.user) location.replace(to); }, () => show("The console does not respond."));

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button"), { user, password } = Object.fromEntries(new FormData(form));
  show(""); button.disabled = true;
  try {
    const { token } = await session();
    const response = await fetch("/api/login", { method: "POST", body: JSON.stringify({ user, password }),
      headers: { "content-type": "application/json", "x-csrf-token": token } });
    if (response.ok) { location.replace(to); return; }
    show((await response.json()).error.message);
    form.password.value = ""; form.password.focus();
  } catch { show("The console does not respond."); }
  button.disabled = false;
});
