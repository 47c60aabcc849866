"""Logging in: against the console's own password file, or with a user and password of the cluster.

Every attempt that fails gets the same response after the same time, whether the user exists or not. Hashes are
computed in a thread, a few at a time, so that a flood of attempts does not keep the page from others.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from barnabas.client.errors import AuthenticationError
from barnabas.console.background import Background
from barnabas.console.clients import Clients, Credentials
from barnabas.console.login.attempts import Attempts
from barnabas.console.login.password_file import LONGEST_PASSWORD, NOBODY, VIEWER, PasswordFile
from barnabas.console.login.sessions import Session, Sessions
from barnabas.console.login.visible import VisibleTo
from barnabas.errors import KafkaError

FAILURE_SECONDS = 1.0
AT_ONCE = 2
MOST_WAITING = 50
MOST_CLUSTER_USERS = 100
"""Each has a client of its own, with a thread."""


class LoginRefused(Exception):
    """Why; the same text for an unknown user and a wrong password."""


class TooManyAttempts(LoginRefused):
    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, round(seconds))
        super().__init__(f"too many attempts: try again in {self.seconds} s")


class _Checker(Protocol):
    async def check(self, user: str, password: str) -> Session | None:
        """None for a wrong user or password. Raises LoginRefused if it cannot be found out."""

    def holds(self, session: Session) -> bool:
        """Whether the login is still worth what it was."""


class FileChecker:
    def __init__(self, file: PasswordFile) -> None:
        self._file = file

    async def check(self, user: str, password: str) -> Session | None:
        entry = self._file.find(user)
        accepted = await asyncio.to_thread((entry or NOBODY).accepts, password)
        if entry is None or not accepted:
            return None
        return Session(user, read_only=entry.role == VIEWER, stamp=entry)

    def holds(self, session: Session) -> bool:
        return self._file.find(session.user) == session.stamp


class ClusterChecker:
    def __init__(self, clients: Clients, mechanism: str, sessions: Callable[[], Sessions]) -> None:
        self._clients = clients
        self._mechanism = mechanism
        self._sessions = sessions

    async def check(self, user: str, password: str) -> Session | None:
        credentials = Credentials(user, password, self._mechanism)
        if not self._sessions().uses(credentials) and self._clients.users >= MOST_CLUSTER_USERS:
            raise LoginRefused(f"{MOST_CLUSTER_USERS} users are logged in: try again later")
        try:
            await self._clients.try_login(credentials)
        except AuthenticationError:
            return None
        except KafkaError as error:
            raise LoginRefused(f"the cluster does not respond: {error.reason}") from None
        except ValueError:
            return None  # a name or password that the mechanism cannot carry
        return Session(user, credentials=credentials)

    def holds(self, session: Session) -> bool:
        return True


class Login:
    """`checker` None: nobody has to log in."""

    def __init__(
        self,
        clients: Clients,
        *,
        file: PasswordFile | None = None,
        mechanism: str | None = None,
        failure_seconds: float = FAILURE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.visible_to = VisibleTo(clients)
        self.sessions = Sessions(self._on_end)
        self._clients = clients
        self._checker: _Checker | None = None
        if file is not None:
            self._checker = FileChecker(file)
        elif mechanism is not None:
            self._checker = ClusterChecker(clients, mechanism, lambda: self.sessions)
        self._attempts = Attempts()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._failure_seconds = failure_seconds
        self._clock = clock
        self._background = Background()

    @property
    def is_needed(self) -> bool:
        return self._checker is not None

    async def log_in(self, user: str, password: str, address: str) -> str:
        """The id of the new session. Raises LoginRefused."""
        assert self._checker is not None
        began = self._clock()
        wait = self._attempts.take(address, user, began)
        if wait > 0 or self._waiting >= MOST_WAITING:
            raise TooManyAttempts(wait)
        session = None
        if 0 < len(password) <= LONGEST_PASSWORD and 0 < len(user) <= LONGEST_PASSWORD:
            self._waiting += 1
            try:
                async with self._turns:
                    session = await self._checker.check(user, password)
            finally:
                self._waiting -= 1
        if session is None:
            await asyncio.sleep(began + self._failure_seconds - self._clock())
            raise LoginRefused("the user or the password is wrong")
        self._attempts.give_back(address, user, self._clock())
        return self.sessions.begin(session, self._clock())

    def find(self, session_id: str | None) -> Session | None:
        session = self.sessions.find(session_id, self._clock())
        if session is not None and session_id is not None and self._checker and not self._checker.holds(session):
            self.sessions.end(session_id)
            return None
        return session

    def _on_end(self, session: Session) -> None:
        credentials = session.credentials
        if credentials is not None and not self.sessions.uses(credentials):
            self.visible_to.forget(credentials)
            self._background.start(self._clients.forget(credentials))

    async def close(self) -> None:
        await self._background.close()
