"""Who makes the request that is being served: the rights of everything that it does, and the name in the audit line.

The actor travels in a context variable, so tasks and threads that a request starts act for the same user, and an
endpoint that asks the cluster does so with the user's own connections without knowing about logins. The console's own
tasks (collector, alarms) have no actor, and use the console's own connections.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from barnabas.client.admin.aio import Admin
from barnabas.client.consumer.aio import Consumer
from barnabas.client.consumer.consumer import Consumer as BlockingConsumer
from barnabas.client.errors import AuthenticationError
from barnabas.client.producer.aio import Producer
from barnabas.console.clients import Clients, Credentials
from barnabas.console.login.sessions import Session
from barnabas.console.login.visible import Visible

NOBODY = "-"
_current: ContextVar["Actor | None"] = ContextVar("actor", default=None)


@dataclass(slots=True)
class Actor:
    """One request. `session` is None where nobody has to log in, and before the login."""

    session_id: str
    """What the cookie says after the response: a login and a logout change it."""
    address: str
    session: Session | None = None
    visible: Visible | None = None
    """What a user of the cluster may see; None is everything."""
    audited: list[str] = field(default_factory=list)
    """Changes that the endpoint has named in the audit log."""

    @property
    def name(self) -> str:
        """As one word of a log line."""
        return self.session.user.encode("unicode_escape").decode().replace(" ", "\\x20") if self.session else NOBODY

    @property
    def credentials(self) -> Credentials | None:
        return self.session.credentials if self.session else None


def current_actor() -> Actor | None:
    return _current.get()


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    token = _current.set(actor)
    try:
        yield
    finally:
        _current.reset(token)


class ActingClients:
    """The clients as endpoints have them: those of whoever makes the request."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    @property
    def bootstrap(self) -> str:
        return self._clients.bootstrap

    def admin(self) -> Admin:
        return self._clients.admin(_credentials())

    def consumer(self, **own: str) -> Consumer:
        return self._clients.consumer(_credentials(), **own)

    def blocking_consumer(self, **own: str) -> BlockingConsumer:
        return self._clients.blocking_consumer(_credentials(), **own)

    def producer(self) -> Producer:
        return self._clients.producer(_credentials())


def _credentials() -> Credentials | None:
    """Raises AuthenticationError: what a request still does after its user has logged out has no rights."""
    actor = _current.get()
    if actor is not None and actor.session is not None and actor.session.is_over:
        raise AuthenticationError("the session is over")
    return actor.credentials if actor else None
