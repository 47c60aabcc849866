"""The broker's side of SCRAM: who passes, and that nothing tells an unknown user from a wrong password."""

import pytest

from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.scram import HASHES, ScramClient, salted_password
from barnabas.machines.sasl.scram_server import ScramCredential, ScramServer, TokenLogin, token_id_of

SALT = b"0123456789"


def credential(mechanism: str, password: str) -> ScramCredential:
    salted = salted_password(HASHES[mechanism], password.encode(), SALT, 4096)
    return ScramCredential.of(mechanism, SALT, salted, 4096)


def server(mechanism: str = "SCRAM-SHA-256", nonce: str = "more", **passwords: str) -> ScramServer:
    known = {name: credential(mechanism, password) for name, password in passwords.items()}
    return ScramServer(mechanism, known.get, lambda _: None, nonce, b"fake")


@pytest.mark.parametrize("mechanism", HASHES)
def test_both_sides_agree_on_the_right_password(mechanism: str) -> None:
    client, broker = ScramClient(mechanism, "alice", "secret", "nonce"), server(mechanism, alice="secret")
    proof = client.respond(broker.respond(client.begin()))
    assert proof is not None and not broker.is_done
    assert client.respond(broker.respond(proof)) is None
    assert (broker.is_done, broker.username) == (True, "alice")


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user_fail_at_the_same_step(user: str) -> None:
    client, broker = ScramClient("SCRAM-SHA-256", user, "wrong", "nonce"), server(alice="secret")
    proof = client.respond(broker.respond(client.begin()))
    assert proof is not None
    with pytest.raises(SaslError, match="invalid credentials"):
        broker.respond(proof)
    assert not broker.is_done


def test_an_unknown_user_has_the_same_salt_each_time() -> None:
    first, second, other = (server().respond(f"n,,n={name},r=x".encode()) for name in ("a", "a", "b"))
    assert first == second != other


def test_a_proof_cannot_be_used_again_with_another_nonce() -> None:
    client, broker = ScramClient("SCRAM-SHA-256", "alice", "secret", "nonce"), server(alice="secret")
    proof = client.respond(broker.respond(client.begin()))
    assert proof is not None
    later = server(nonce="other", alice="secret")
    later.respond(client.begin())
    with pytest.raises(SaslError):
        later.respond(proof)


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,n=a", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"n,a=bob,n=alice,r=x", b"n,,n=a=b,r=x", b"\xff"],
)
def test_other_first_messages_are_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        server(alice="secret").respond(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws,r=xmore,p=AAAA", b"c=biws,r=xmore,p=!", b"c=eSws,r=xmore,p=AAAA", b"\xff"]
)
def test_other_last_messages_are_refused(message: bytes) -> None:
    broker = server(alice="secret")
    broker.respond(b"n,,n=alice,r=x")
    with pytest.raises(SaslError):
        broker.respond(message)


def test_a_credential_survives_its_text_and_shows_nothing() -> None:
    kept = credential("SCRAM-SHA-512", "secret")
    assert ScramCredential.parse(kept.text()) == kept
    assert repr(kept) == "ScramCredential(iterations=4096)"
    with pytest.raises(ValueError, match="lacks"):
        ScramCredential.parse("salt=AAAA")


def token_server(mechanism: str = "SCRAM-SHA-256") -> ScramServer:
    login = TokenLogin("alice", credential(mechanism, "hmac"), 1234)
    return ScramServer(mechanism, {"alice": credential(mechanism, "secret")}.get, {"id": login}.get, "more", b"fake")


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_delegation_token_logs_in_its_owner_until_it_expires(mechanism: str) -> None:
    client, broker = ScramClient(mechanism, "id", "hmac", "nonce", is_token=True), token_server(mechanism)
    assert token_id_of(client.begin()) == "id"
    proof = client.respond(broker.respond(client.begin()))
    assert proof is not None and token_id_of(proof) is None
    assert client.respond(broker.respond(proof)) is None
    assert (broker.is_done, broker.username, broker.is_token, broker.expires_at_ms) == (True, "alice", True, 1234)


@pytest.mark.parametrize(
    ("name", "password", "is_token"),
    [("id", "wrong", True), ("other", "hmac", True), ("alice", "secret", True), ("id", "hmac", False)],
)
def test_a_token_and_a_user_are_never_mistaken_for_each_other(name: str, password: str, is_token: bool) -> None:
    client, broker = ScramClient("SCRAM-SHA-256", name, password, "nonce", is_token=is_token), token_server()
    proof = client.respond(broker.respond(client.begin()))
    assert proof is not None
    with pytest.raises(SaslError, match="invalid credentials"):
        broker.respond(proof)
    assert not broker.is_done


@pytest.mark.parametrize(
    ("message", "token_id"),
    [
        (b"n,,n=id,r=x,tokenauth=TRUE", "id"),
        (b"n,a=id,n=id,r=x,other=1,tokenauth=true,last=2", "id"),
        (b"n,,n=a=2Cb,r=x,tokenauth=true", "a,b"),
        (b"n,,n=id,r=x,tokenauth=false", None),
        (b"n,,n=id,r=x,tokenauth=truely", None),
        (b"n,,n=tokenauth=3Dtrue,r=x", None),
        (b"n,,n=id,r=tokenauth=true", None),
        (b"tokenauth=true \xff", None),
    ],
)
def test_which_messages_name_a_token(message: bytes, token_id: str | None) -> None:
    assert token_id_of(message) == token_id
