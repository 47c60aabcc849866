"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the broker's side.

    client  n,[a=authorization id],n=user,r=nonce[,extensions]
    server  r=nonce+more,s=salt,i=iterations
    client  c=...,r=nonce+more,p=proof
    server  v=signature

With the extension `tokenauth=true` the user is the id of a delegation token, its HMAC in base64 is the password, and
the token's owner is logged in (KIP-48).

A user that does not exist gets a salt too, the same one each time, and fails at the proof like a wrong password, so
that names cannot be tried out. What is stored of a password cannot be used to log in.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.scram import HASHES, LEAST_ITERATIONS, SALT_BYTES, decoded, xor

FIRST = re.compile(r"(n,(?:a=([^,]+))?,)(n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)((?:,[A-Za-z]+=[^,\0]+)*))")
FINAL = re.compile(r"(c=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)),p=([^,]+)")
CREDENTIAL = re.compile(r"(\w+)=([^,]+)(?:,|$)")
TOKEN_EXTENSION = re.compile(",tokenauth=true(?:,|$)", re.IGNORECASE)
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism"


class ScramCredential(NamedTuple):
    """What is kept of a password; in text as Kafka keeps it in ZooKeeper."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, mechanism: str, salt: bytes, salted_password: bytes, iterations: int) -> "ScramCredential":
        hash_name = HASHES[mechanism]
        client_key = hmac.digest(salted_password, b"Client Key", hash_name)
        server_key = hmac.digest(salted_password, b"Server Key", hash_name)
        return cls(salt, hashlib.new(hash_name, client_key).digest(), server_key, iterations)

    @classmethod
    def parse(cls, text: str) -> "ScramCredential":
        """Raises ValueError."""
        fields = dict(CREDENTIAL.findall(text))
        try:
            salt, stored, server = (base64.b64decode(fields[name]) for name in ("salt", "stored_key", "server_key"))
            return cls(salt, stored, server, int(fields["iterations"]))
        except KeyError as missing:
            raise ValueError(f"a SCRAM credential lacks {missing}") from None

    def text(self) -> str:
        salt, stored, server = (base64.b64encode(each).decode() for each in self[:3])
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class TokenLogin(NamedTuple):
    """What is needed to log in with a delegation token."""

    owner: str
    credential: ScramCredential
    expires_at_ms: int


def token_id_of(message: bytes) -> str | None:
    """The delegation token that a client's first message names, if it names one."""
    if b"tokenauth" not in message.lower():
        return None
    try:
        match = FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        return None
    return _unescaped(match[4]) if match is not None and TOKEN_EXTENSION.search(match[6]) else None


class ScramServer:
    """`username` is known after the first message, `is_done` set once the proof was right."""

    def __init__(
        self,
        mechanism: str,
        find: Callable[[str], ScramCredential | None],
        find_token: Callable[[str], TokenLogin | None],
        nonce: str,
        fake_key: bytes,
    ) -> None:
        """`find` gives a user's credential, `find_token` that of a delegation token. `fake_key` is secret and lasts,
        the nonce is fresh.
        """
        self._name = mechanism
        self._hash = HASHES[mechanism]
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._fake_key = fake_key
        self._credential: ScramCredential | None = None
        self._header = ""
        self._first = ""
        self._challenge = ""
        self.username = ""
        self.expires_at_ms: int | None = None
        self.is_token = False
        self.is_done = False

    def respond(self, message: bytes) -> bytes:
        """Raises SaslError, the same for whatever is wrong."""
        try:
            text = message.decode()
            return self._check(text) if self._challenge else self._begin(text)
        except (UnicodeDecodeError, SaslError):
            raise SaslError(f"{INVALID} {self._name}") from None

    def _begin(self, text: str) -> bytes:
        match = FIRST.fullmatch(text)
        if match is None or re.search("=(?!2C|3D)", match[4]):
            raise SaslError(f"{INVALID} {self._name}")
        self._header, authorization_id, self._first, name, nonce, extensions = match.groups()
        self.username = given_name = _unescaped(name)
        if authorization_id is not None and authorization_id != name:
            raise SaslError(f"{INVALID} {self._name}")
        self.is_token = TOKEN_EXTENSION.search(extensions) is not None
        if not self.is_token:
            self._credential = self._find(given_name)
        elif (token := self._find_token(given_name)) is not None:
            self.username, self._credential, self.expires_at_ms = token
        self._nonce = nonce + self._nonce
        salt, iterations = self._fake_salt(given_name), LEAST_ITERATIONS
        if self._credential is not None:
            salt, iterations = self._credential.salt, self._credential.iterations
        self._challenge = f"r={self._nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        return self._challenge.encode()

    def _check(self, text: str) -> bytes:
        match = FINAL.fullmatch(text)
        if match is None or self.is_done:
            raise SaslError(f"{INVALID} {self._name}")
        without_proof, binding, nonce, proof = match.groups()
        credential = self._credential
        size = hashlib.new(self._hash).digest_size
        known = ScramCredential(b"", bytes(size), bytes(size), 0) if credential is None else credential
        signed = ",".join((self._first, self._challenge, without_proof)).encode()
        signature = hmac.digest(known.stored_key, signed, self._hash)
        sent = decoded(proof)
        client_key = xor(sent, signature) if len(sent) == size else bytes(size)
        is_right = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), known.stored_key)
        if (
            not is_right
            or credential is None
            or nonce != self._nonce
            or binding != base64.b64encode(self._header.encode()).decode()
        ):
            raise SaslError(f"{INVALID} {self._name}")
        self.is_done = True
        return b"v=" + base64.b64encode(hmac.digest(known.server_key, signed, self._hash))

    def _fake_salt(self, given_name: str) -> bytes:
        return hmac.digest(self._fake_key, given_name.encode(), "sha256")[:SALT_BYTES]


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
