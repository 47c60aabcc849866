"""Who is logged in: a random id in a cookie, everything else here. No I/O, no clock.

A session ends by logging out, after some hours whatever happens, or after half an hour in which no page was open. Ids
are made at the login, so one that somebody planted before it is worth nothing afterwards.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.console.clients import Credentials

LIFE_SECONDS = 12 * 3600.0
IDLE_SECONDS = 1800.0
MOST_SESSIONS = 10_000


@dataclass(slots=True)
class Session:
    """`credentials` are those of a user of the cluster; without, changes have the rights of the console itself."""

    user: str
    read_only: bool = False
    credentials: Credentials | None = field(default=None, repr=False)
    stamp: object = field(default=None, repr=False)
    """What the login was checked against: a session ends when that has changed."""
    began: float = 0.0
    seen: float = 0.0
    is_over: bool = False


class Sessions:
    """Times are monotonic seconds. `on_end` hears of every session that is over."""

    def __init__(self, on_end: Callable[[Session], None] = lambda session: None, most: int = MOST_SESSIONS) -> None:
        self._sessions: dict[str, Session] = {}
        self._most = most
        self._on_end = on_end

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, session: Session, now: float) -> str:
        """Its id."""
        self.end_old(now)
        if len(self._sessions) >= self._most:
            self.end(min(self._sessions, key=lambda each: self._sessions[each].seen))
        session.began = session.seen = now
        name = secrets.token_urlsafe(32)
        self._sessions[name] = session
        return name

    def find(self, name: str | None, now: float) -> Session | None:
        session = self._sessions.get(name) if name else None
        if session is None or name is None:
            return None
        if _is_over(session, now):
            self.end(name)
            return None
        session.seen = now
        return session

    def end(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            session.is_over = True
            self._on_end(session)

    def end_old(self, now: float) -> None:
        for name in [name for name, session in self._sessions.items() if _is_over(session, now)]:
            self.end(name)

    def uses(self, credentials: Credentials) -> bool:
        return any(session.credentials == credentials for session in self._sessions.values())


def _is_over(session: Session, now: float) -> bool:
    return now - session.began >= LIFE_SECONDS or now - session.seen >= IDLE_SECONDS
