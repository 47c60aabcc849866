"""The exchange of RFC 7677 byte for byte, and servers that cheat."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.plain import PlainClient, read_plain
from barnabas.machines.sasl.scram import ScramClient, read_fields, salted_password

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_exchange_of_rfc_7677() -> None:
    machine = client()
    assert machine.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert machine.respond(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert machine.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_sha_512_against_the_other_side_worked_out_here() -> None:
    machine = ScramClient("SCRAM-SHA-512", "u", "pw", "abc")
    first = machine.begin().decode().removeprefix("n,,")
    server_first = "r=abcdef,s=" + base64.b64encode(b"salt").decode() + ",i=4096"
    final = machine.respond(server_first.encode())
    assert final is not None
    without_proof, _, proof = final.decode().rpartition(",p=")
    salted = hashlib.pbkdf2_hmac("sha512", b"pw", b"salt", 4096)
    stored = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
    message = f"{first},{server_first},{without_proof}".encode()
    signature = hmac.digest(stored, message, "sha512")
    recovered = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(recovered).digest() == stored, "the server would accept the proof"
    good = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), message, "sha512")
    assert machine.respond(b"v=" + base64.b64encode(good)) is None


def test_names_with_commas_and_equals_signs_are_escaped() -> None:
    assert ScramClient("SCRAM-SHA-256", "a,b=c", "pw", "n").begin() == b"n,,n=a=2Cb=3Dc,r=n"


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "does not continue ours"),
        (f"r={NONCE},s=c2FsdA==,i=4096".encode(), "does not continue ours"),
        (f"r={NONCE}x,s=c2FsdA==,i=4095".encode(), "it may be 4096 to"),
        (f"r={NONCE}x,s=c2FsdA==,i=999999999".encode(), "it may be 4096 to"),
        (f"r={NONCE}x,s=c2FsdA==,i=9999999999".encode(), "no number of iterations"),
        (f"r={NONCE}x,s=c2FsdA==,i=-1".encode(), "no number of iterations"),
        (f"r={NONCE}x,s=,i=4096".encode(), "no salt"),
        (f"r={NONCE}x,s=!!,i=4096".encode(), "not base64"),
        (f"m=ext,r={NONCE}x,s=c2FsdA==,i=4096".encode(), "malformed"),
        (b"nonsense", "malformed"),
        (b"", "malformed"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_first_message_that_is_not_right(challenge: bytes, words: str) -> None:
    with pytest.raises(SaslError, match=words):
        client().respond(challenge)


@pytest.mark.parametrize("final", [b"v=AAAA", b"v=", b"e=invalid-proof", b"v=!!", b"x=1", b""])
def test_a_server_that_does_not_know_the_password(final: bytes) -> None:
    machine = client()
    machine.respond(SERVER_FIRST)
    with pytest.raises(SaslError):
        machine.respond(final)


def test_nothing_comes_after_the_end() -> None:
    machine = client()
    machine.respond(SERVER_FIRST)
    machine.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(SaslError, match="went on"):
        machine.respond(b"")


def test_plain() -> None:
    machine = PlainClient("alice", "s,e=c\u00e9")
    assert machine.begin() == "\0alice\0s,e=c\u00e9".encode()
    assert machine.respond(b"") is None
    with pytest.raises(SaslError):
        machine.respond(b"more")
    assert read_plain(machine.begin()) == ("", "alice", "s,e=c\u00e9")
    for bad in (b"", b"\0a", b"\0a\0b\0c", b"\0\0p", b"\0u\0", b"\xff\0u\0p"):
        with pytest.raises(SaslError):
            read_plain(bad)


def test_helpers() -> None:
    assert read_fields(b"a=1,b=2=3") == {"a": "1", "b": "2=3"}
    assert salted_password("sha256", b"p", b"s", 1) == hashlib.pbkdf2_hmac("sha256", b"p", b"s", 1)
