"""Logging in and out. These change nothing in the cluster, so they work on a read-only console too."""

from typing import Any

from starlette.requests import Request

from barnabas.console.api.topics import text_of
from barnabas.console.console import Console
from barnabas.console.login.actor import Actor, current_actor
from barnabas.console.login.login import LoginRefused


def _actor() -> Actor:
    actor = current_actor()
    assert actor is not None, "the guard names the actor of every request"
    return actor


def session_of(console: Console) -> dict[str, Any]:
    """What a page needs to know of its session."""
    actor = _actor()
    return {
        "token": console.guard.token(actor.session_id),
        "needsLogin": console.login.is_needed,
        "user": actor.session.user if actor.session else None,
    }


async def log_in(console: Console, request: Request) -> Any:
    """{"user", "password"}; the session gets a new id."""
    body, actor = await request.json(), _actor()
    user, password = text_of(body, "user"), text_of(body, "password")
    if not console.login.is_needed:
        raise LookupError("nobody has to log in here")
    try:
        session_id = await console.login.log_in(user, password, actor.address)
    except LoginRefused as error:
        console.audit("log in as", user[:100], f"refused: {error}")
        raise
    if actor.session is not None:
        console.login.sessions.end(actor.session_id)
    actor.session_id, actor.session = session_id, console.login.find(session_id)
    console.audit("log in as", user)
    return {"ok": True}


async def log_out(console: Console, request: Request) -> Any:
    actor = _actor()
    console.audit("log out", actor.name)
    console.login.sessions.end(actor.session_id)
    actor.session_id = console.guard.new_session()
    return {"ok": True}


ROUTES = (("POST", "/login", log_in), ("POST", "/logout", log_out))
