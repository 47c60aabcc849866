"""The parts of logging in: the password file, the limit on attempts, sessions; and every route behind them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")
pytest.importorskip("pyarrow", reason="the console needs pyarrow")

from console_client import Visitor, run_console
from starlette.applications import Starlette
from starlette.routing import Route

from barnabas.console.app import make_app
from barnabas.console.clients import Credentials
from barnabas.console.console import Console
from barnabas.console.guarded import Guarded
from barnabas.console.login.attempts import Attempts
from barnabas.console.login.password_file import (
    ADMIN,
    VIEWER,
    Cost,
    PasswordEntry,
    PasswordFile,
    PasswordFileError,
    read_entries,
    write_entries,
)
from barnabas.console.login.sessions import IDLE_SECONDS, LIFE_SECONDS, Session, Sessions
from barnabas.console.security import PUBLIC
from barnabas.console.settings import ConsoleSettings
from barnabas.testing import Broker

CHEAP = Cost(2, 1, 1)
NO_CLUSTER = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.txt"
    entries = [PasswordEntry.make("ann", ADMIN, "secret é", CHEAP), PasswordEntry.make("bob", VIEWER, "other", CHEAP)]
    write_entries(path, {each.name: each for each in entries})
    return path


class TestPasswordFile:
    def test_users_and_their_passwords(self, users: Path) -> None:
        ann, bob = read_entries(users).values()
        assert (ann.name, ann.role, bob.role) == ("ann", ADMIN, VIEWER)
        assert ann.accepts("secret é") and not ann.accepts("secret") and not bob.accepts("secret é")
        assert "secret" not in users.read_text() and users.stat().st_mode & 0o777 == 0o600
        assert ann.digest.hex() not in repr(ann)

    def test_equal_passwords_have_different_hashes(self) -> None:
        one, two = (PasswordEntry.make("a", ADMIN, "x", CHEAP) for _ in range(2))
        assert one.digest != two.digest

    @pytest.mark.parametrize(
        "line",
        [
            "ann",
            "ann:admin:plain:2,1,1:c2FsdA==:aGFzaA==",
            "ann:root:scrypt:2,1,1:c2FsdA==:aGFzaA==",
            "an n:admin:scrypt:2,1,1:c2FsdA==:aGFzaA==",
            "ann:admin:scrypt:1073741824,8,1:c2FsdA==:aGFzaA==",
            "ann:admin:scrypt:3,1,1:c2FsdA==:aGFzaA==",
            "ann:admin:scrypt:2,1,1:***:aGFzaA==",
            "ann:admin:scrypt:2,1,1:c2FsdA==:aGFzaA==\nann:admin:scrypt:2,1,1:c2FsdA==:aGFzaA==",
            "\xff",
        ],
    )
    def test_a_file_that_makes_no_sense_is_refused(self, tmp_path: Path, line: str) -> None:
        path = tmp_path / "users.txt"
        path.write_bytes(line.encode("latin-1"))
        path.chmod(0o600)
        with pytest.raises(PasswordFileError, match=r"line \d"):
            PasswordFile(path)

    def test_a_file_that_others_can_write_is_refused(self, users: Path) -> None:
        users.chmod(0o620)
        with pytest.raises(PasswordFileError, match="chmod 600"):
            PasswordFile(users)

    def test_a_change_is_noticed_and_a_missing_file_lets_nobody_in(self, users: Path) -> None:
        file = PasswordFile(users)
        assert file.find("ann") is not None
        write_entries(users, {})
        assert file.find("ann") is None
        users.unlink()
        assert file.find("ann") is None


class TestAttempts:
    def test_they_run_out_and_come_back(self) -> None:
        attempts = Attempts(3, 10.0)
        assert [attempts.take("1.1.1.1", "ann", 0.0) for _ in range(4)] == [0, 0, 0, 10.0]
        assert attempts.take("1.1.1.1", "bob", 0.0) > 0, "the address has used them up"
        assert attempts.take("2.2.2.2", "ann", 0.0) > 0, "so has the user"
        assert attempts.take("2.2.2.2", "bob", 0.0) == 0
        assert attempts.take("1.1.1.1", "ann", 10.0) == 0
        assert attempts.take("1.1.1.1", "ann", 10.0) > 0

    def test_a_success_counts_nothing(self) -> None:
        attempts = Attempts(2, 10.0)
        for _ in range(100):
            assert attempts.take("1.1.1.1", "ann", 0.0) == 0
            attempts.give_back("1.1.1.1", "ann", 0.0)

    def test_memory_is_bounded(self) -> None:
        attempts = Attempts()
        for number in range(60_000):
            attempts.take(str(number), "x" * 10_000 + str(number), 0.0)
        assert len(attempts._buckets) <= 20_000


class TestSessions:
    def test_they_end(self) -> None:
        ended: list[str] = []
        sessions = Sessions(lambda session: ended.append(session.user))
        name = sessions.begin(Session("ann"), 0.0)
        assert sessions.find(name, IDLE_SECONDS - 1) is not None
        assert sessions.find(name, 2 * IDLE_SECONDS - 2) is not None, "it was used meanwhile"
        assert sessions.find(name, 3 * IDLE_SECONDS) is None
        used, now = sessions.begin(Session("bob"), 0.0), 0.0
        while now < LIFE_SECONDS - 1:
            assert sessions.find(used, now) is not None
            now += IDLE_SECONDS / 2
        assert sessions.find(used, LIFE_SECONDS) is None
        left = sessions.begin(Session("cid"), 0.0)
        sessions.end(left)
        assert sessions.find(left, 0.0) is None and sessions.find(None, 0.0) is None and sessions.find("x", 0.0) is None
        assert ended == ["ann", "bob", "cid"]

    def test_their_number_is_bounded(self) -> None:
        sessions = Sessions(most=50)
        first = sessions.begin(Session("ann"), 0.0)
        for number in range(50):
            sessions.begin(Session("bob"), 1.0 + number / 50)
        assert len(sessions) == 50 and sessions.find(first, 2.0) is None

    def test_a_password_shows_nowhere(self) -> None:
        credentials = Credentials("ann", "hidden", "PLAIN")
        assert "hidden" not in repr(credentials) + repr(Session("ann", credentials=credentials))


def routes_of(app: Any) -> list[Route]:
    assert isinstance(app, Guarded) and isinstance(app.app, Starlette)
    routes = [each for each in app.app.routes if isinstance(each, Route)]
    assert len(routes) == len(app.app.routes), "mounted applications would not be looked at"
    return routes


def path_of(route: Route) -> str:
    return route.path.replace("{name}", "orders").replace("{", "").replace("}", "")


class TestTheDoor:
    """Nothing is asked of a cluster: there is none."""

    def with_app(self, work: Any, **settings: Any) -> None:
        async def run() -> None:
            console = Console(NO_CLUSTER, "127.0.0.1", 9080, ConsoleSettings(**settings))
            console.login._failure_seconds = 0.0
            try:
                await work(Visitor(make_app(console)), console)
            finally:
                await console.close()

        asyncio.run(run())

    def test_every_route_but_the_public_ones_needs_a_session(self, users: Path) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.open()
            open_ones = set()
            for route in routes_of(visitor.app):
                for method in route.methods or ():
                    path = path_of(route)
                    response = await visitor.ask(method, path, b"{}", **{"x-csrf-token": visitor.token})
                    if response.status == 401 or response.headers.get("location", "").startswith("/login?to="):
                        continue
                    open_ones.add((method, path))
            files = {(method, path) for method, path in open_ones if path.startswith("/static/")}
            assert open_ones - files == set(PUBLIC)
            assert {method for method, _ in files} == {"GET"}

        self.with_app(work, users=users)

    def test_every_change_is_refused_by_a_read_only_console(self) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.open()
            changes = [each for each in routes_of(visitor.app) if "POST" in (each.methods or ())]
            assert len(changes) > 8
            for route in changes:
                response = await visitor.post(path_of(route), {})
                if route.path not in ("/api/login", "/api/logout"):
                    assert (response.status, response.error) == (403, "this console is read-only"), route.path

        self.with_app(work, read_only=True)

    def test_every_change_needs_the_token_and_leaves_a_line(self, caplog: pytest.LogCaptureFixture) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.open()
            token, visitor.token = visitor.token, "wrong"
            for route in routes_of(visitor.app):
                if "POST" in (route.methods or ()):
                    caplog.clear()
                    assert (await visitor.post(path_of(route), {})).status == 403, route.path
                    (line,) = (each.getMessage() for each in caplog.records if each.name == "barnabas.console.audit")
                    assert line == f"- from 127.0.0.1: POST '{path_of(route)}': refused"
            visitor.token = token
            caplog.clear()
            assert (await visitor.post("/api/topics", {})).status == 400
            assert "- from 127.0.0.1: POST '/api/topics': failed: name is missing" in caplog.text

        with caplog.at_level("INFO", logger="barnabas.console.audit"):
            self.with_app(work)

    @pytest.mark.parametrize(
        ("path", "raw"),
        [
            ("//api/session", None),
            ("/api//session", None),
            ("/static/../api/session", None),
            ("/api/./session", None),
            ("/api/session/", None),
            ("/api/topics/a/b/c/d/e", None),
            ("/api/topics/orders/settings", b"/api/topics%2forders/settings"),
            ("/api/session", b"/api/%73ession"),
            ("/api/session", b"/x"),
            ("/api/session\\..", None),
            ("/api/session\x00", None),
            ("/api/session;x", None),
            ("/api/topics/" + "a" * 2000, None),
            ("", None),
            ("api/session", None),
            ("*", None),
        ],
    )
    def test_tricks_with_paths(self, users: Path, path: str, raw: bytes | None) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.log_in("ann", "secret é")
            for method in ("GET", "POST"):
                more = {"x-csrf-token": visitor.token}
                response = await visitor.ask(
                    method, path, b"{}", raw_path=path.encode() if raw is None else raw, **more
                )
                assert response.status == 404, (method, path)
                assert response.headers["content-security-policy"]

        self.with_app(work, users=users)

    def test_methods_that_are_not_those_of_a_route(self) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.open()
            for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", ""):
                response = await visitor.ask(method, "/api/topics", b"{}", **{"x-csrf-token": visitor.token})
                assert response.status == 403, method
            more = {"x-csrf-token": visitor.token, "x-http-method-override": "DELETE"}
            assert (await visitor.ask("POST", "/api/overview", b"{}", **more)).status == 405
            assert (await visitor.ask("GET", "/api/topics/orders/delete")).status == 405

        self.with_app(work)

    def test_other_protocols_than_http_are_refused(self) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            await visitor.app({"type": "websocket", "path": "/api/session", "headers": []}, None, send)
            assert sent == [{"type": "websocket.close", "code": 1008}]

        self.with_app(work)

    def test_bodies_are_bounded(self) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.open()
            more = {"x-csrf-token": visitor.token}
            huge = await visitor.ask("POST", "/api/topics", b"x", **more, **{"content-length": str(1 << 40)})
            assert huge.status == 413
            unlabelled = await visitor.ask("POST", "/api/topics", b" " * (17 << 20), **more)
            assert unlabelled.status == 413
            deep = await visitor.ask("POST", "/api/topics", b"[" * 500_000, **more)
            assert deep.status == 400
            for body in (b"\xff", b"{", b"nul", b"[]", b"1"):
                assert (await visitor.ask("POST", "/api/topics", body, **more)).status == 400

        self.with_app(work)

    def test_a_flood_of_attempts_gets_429_and_all_failures_look_alike(self, users: Path) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            wrong = await visitor.log_in("ann", "wrong")
            unknown = await visitor.log_in("nobody", "wrong")
            odd = await visitor.log_in("x" * 5000, "y" * 5000)
            assert {each.status for each in (wrong, unknown, odd)} == {401}
            assert wrong.body == unknown.body == odd.body
            found = [(await visitor.log_in("ann", "wrong")).status for _ in range(20)]
            assert 429 in found and found[-1] == 429
            limited = await visitor.log_in("ann", "secret é")
            assert limited.status == 429 and int(limited.headers["retry-after"]) > 0
            other = Visitor(visitor.app, "10.0.0.7")
            assert (await other.log_in("bob", "other")).status == 200, "others are not concerned"

        self.with_app(work, users=users)

    def test_session_ids_are_new_after_a_login_and_worth_nothing_after_a_logout(self, users: Path) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            assert (await visitor.open())["user"] is None
            planted, old_token = visitor.cookie, visitor.token
            response = await visitor.log_in("ann", "secret é")
            cookie = response.headers["set-cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
            assert visitor.cookie != planted
            thief = Visitor(visitor.app)
            thief.cookie = planted
            assert (await thief.get("/api/overview")).status == 401
            visitor.token, token = old_token, visitor.token
            assert (await visitor.post("/api/topics", {})).status == 403, "a token from before the login"
            visitor.token = token
            session, name = await visitor.open(), visitor.cookie
            assert (session["user"], session["readOnly"], session["needsLogin"]) == ("ann", False, True)
            assert (await visitor.post("/api/logout", {})).status == 200
            visitor.cookie = name
            assert (await visitor.get("/api/overview")).status == 401
            assert (await visitor.ask("GET", "/", scheme="https")).status == 303

        self.with_app(work, users=users)

    def test_the_cookie_is_secure_under_tls(self, users: Path) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            response = await visitor.ask("GET", "/login", scheme="https")
            assert "Secure" in response.headers["set-cookie"] and response.headers["strict-transport-security"]

        self.with_app(work, users=users)

    def test_a_user_who_is_removed_is_logged_out_and_a_viewer_changes_nothing(self, users: Path) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.log_in("bob", "other")
            assert (await visitor.open())["readOnly"] is True
            refused = await visitor.post("/api/topics", {"name": "x"})
            assert (refused.status, refused.error) == (403, "this user may look, and change nothing")
            entries = read_entries(users)
            entries["bob"] = PasswordEntry.make("bob", VIEWER, "new", CHEAP)
            write_entries(users, entries)
            assert (await visitor.get("/api/overview")).status == 401
            assert (await visitor.log_in("bob", "new")).status == 200
            write_entries(users, {})
            assert (await visitor.get("/api/session")).json["user"] is None

        self.with_app(work, users=users)

    def test_a_link_survives_the_login(self, users: Path) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            response = await visitor.get("/topics/orders?tab=settings&x=//evil")
            assert response.status == 303
            assert response.headers["location"] == "/login?to=%2Ftopics%2Forders%3Ftab%3Dsettings%26x%3D%2F%2Fevil"

        self.with_app(work, users=users)

    def test_names_of_users_stay_one_word_of_a_line(self, users: Path, caplog: pytest.LogCaptureFixture) -> None:
        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.log_in("ann: done\n- from 1.1.1.1: delete topic 'x': done", "x")

        with caplog.at_level("INFO", logger="barnabas.console.audit"):
            self.with_app(work, users=users)
        assert all("\n" not in each.getMessage() for each in caplog.records)


def test_a_search_ends_with_its_session(users: Path) -> None:
    """A live search of somebody who is logged out elsewhere."""
    with Broker() as broker:
        broker.create_topic("orders", 1)

        async def work(visitor: Visitor, console: Console) -> None:
            await visitor.log_in("ann", "secret é")
            chunks = 0

            async def on_message(message: Any) -> None:
                nonlocal chunks
                if message["type"] == "http.response.body":
                    chunks += 1
                    if chunks == 2:
                        console.login.sessions.end(visitor.cookie.partition("=")[2])

            visitor.on_message = on_message  # type: ignore[method-assign]
            response = await visitor.get("/api/topics/orders/messages?start=live")
            assert response.status == 200 and b"done" not in response.body and chunks < 10

        run_console({"bootstrap.servers": broker.bootstrap}, work, users=users)


def test_the_cost_of_a_hash_is_that_of_the_present() -> None:
    assert Cost().n * Cost().r * 128 >= 32 << 20
