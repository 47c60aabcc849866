"""Which requests the console answers at all."""

import pytest

from barnabas.console.security import HEADERS, Guard, is_loopback

HOST = {"host": "127.0.0.1:9080"}


@pytest.fixture
def guard() -> Guard:
    return Guard("127.0.0.1", 9080)


def test_own_page_is_served(guard: Guard) -> None:
    assert guard.refusal("GET", HOST, None) is None
    assert guard.refusal("GET", {"host": "localhost:9080", "sec-fetch-site": "same-origin"}, None) is None


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:9080", "127.0.0.1", "127.0.0.1:80"])
def test_a_foreign_host_name_is_refused(guard: Guard, host: str) -> None:
    assert guard.refusal("GET", {"host": host}, None)


@pytest.mark.parametrize(
    "more", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_requests_of_other_sites_are_refused(guard: Guard, more: dict[str, str]) -> None:
    session = guard.new_session()
    assert guard.refusal("GET", HOST | more, session)
    assert guard.refusal("POST", HOST | more | {"x-csrf-token": guard.token(session)}, session)


def test_a_change_needs_the_token_of_its_session(guard: Guard) -> None:
    session, other = guard.new_session(), guard.new_session()
    assert guard.refusal("POST", HOST | {"x-csrf-token": guard.token(session)}, session) is None
    assert guard.refusal("POST", HOST, session)
    assert guard.refusal("POST", HOST | {"x-csrf-token": guard.token(other)}, session)
    assert guard.refusal("POST", HOST | {"x-csrf-token": guard.token("")}, None)
    assert guard.refusal("POST", HOST | {"x-csrf-token": "é"}, session)


def test_other_methods_are_refused(guard: Guard) -> None:
    session = guard.new_session()
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert guard.refusal(method, HOST | {"x-csrf-token": guard.token(session)}, session)


def test_the_policy_allows_nothing_inline() -> None:
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_loopback() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "[::1]", "localhost")] == [True] * 3
    assert [is_loopback(host) for host in ("0.0.0.0", "10.0.0.1", "console.example", "[::]")] == [False] * 4
