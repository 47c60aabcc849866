"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the client's side, and the arithmetic that both sides need.

    client  n,,n=user,r=nonce
    server  r=nonce+more,s=salt,i=iterations
    client  c=biws,r=nonce+more,p=proof
    server  v=signature        or  e=error

The password never travels; each side proves to the other that it knows it. Iterations are bounded below by the RFC and
above here, because the server picks them and the client does the work.
"""

import base64
import binascii
import hashlib
import hmac

from barnabas.machines.sasl.mechanism import SaslError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 1 << 20
SALT_BYTES = 20
"""Of every user that is created here, and of those that do not exist: the length must not tell them apart."""
GS2_HEADER = "n,,"
TOKEN_EXTENSION = ",tokenauth=true"


class ScramClient:
    def __init__(self, mechanism: str, username: str, password: str, nonce: str, *, is_token: bool = False) -> None:
        """`nonce` is fresh for each exchange, from a source that cannot be guessed.

        With `is_token` the two are the id and the HMAC of a delegation token (KIP-48).
        """
        self.name = mechanism
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._first_bare = f"n={_escaped(username)},r={nonce}{TOKEN_EXTENSION if is_token else ''}"
        self._server_signature = b""
        self._step = 0

    def begin(self) -> bytes:
        return f"{GS2_HEADER}{self._first_bare}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        self._step += 1
        if self._step == 1:
            return self._prove(challenge)
        if self._step == 2:
            self._check_signature(challenge)
            return None
        raise SaslError("the server went on after the end of SCRAM")

    def _prove(self, challenge: bytes) -> bytes:
        fields = read_fields(challenge)
        nonce, salt, iterations = fields.get("r", ""), decoded(fields.get("s", "")), fields.get("i", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise SaslError("the server's SCRAM nonce does not continue ours")
        if not salt or not iterations.isdecimal() or len(iterations) > 9:
            raise SaslError("the server's SCRAM message has no salt or no number of iterations")
        if not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
            raise SaslError(
                f"the server asks for {iterations} SCRAM iterations, it may be {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
            )
        salted = salted_password(self._hash, self._password, salt, int(iterations))
        without_proof = f"c={base64.b64encode(GS2_HEADER.encode()).decode()},r={nonce}"
        message = ",".join((self._first_bare, challenge.decode(), without_proof)).encode()
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), message, self._hash)
        self._server_signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), message, self._hash)
        proof = base64.b64encode(xor(client_key, signature)).decode()
        return f"{without_proof},p={proof}".encode()

    def _check_signature(self, challenge: bytes) -> None:
        fields = read_fields(challenge)
        if "e" in fields:
            raise SaslError(f"the server refused: {fields['e']}")
        if not hmac.compare_digest(decoded(fields.get("v", "")), self._server_signature):
            raise SaslError("the server could not prove that it knows the password: it may not be the right one")


def salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """The expensive step: off the loop where it serves others."""
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))


def read_fields(message: bytes) -> dict[str, str]:
    """`a=b,c=d` of a SCRAM message, without its GS2 header. Raises SaslError."""
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise SaslError("the SCRAM message is not UTF-8") from None
    fields = {part[0]: part[2:] for part in parts if part[1:2] == "="}
    if len(fields) != len(parts) or "m" in fields:
        raise SaslError("the SCRAM message is malformed")
    return fields


def _escaped(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError("the SCRAM message holds what is not base64") from None
