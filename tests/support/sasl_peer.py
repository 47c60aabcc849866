"""A client of one broker on one socket: logs in by SASL and sends single requests, with everything in plain sight."""

from __future__ import annotations

import secrets
import socket
import struct
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.machines.sasl.scram import ScramClient
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.headers import decode_response_header, encode_request
from barnabas.protocol.message_types import response_type
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class Peer:
    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self.local_port = self._socket.getsockname()[1]

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, api_key: ApiKey, version: int, body: bytes) -> bytes:
        """The body of the response; empty where the broker closed the connection instead."""
        content = struct.pack(">hhih", api_key, version, 7, -1) + body
        return self._exchange(struct.pack(">i", len(content)) + content)[8:]

    def ask(self, request: Any, version: int) -> Any:
        """The response, decoded."""
        response = response_type(ApiKey(request.__schema__.api_key))
        data = self._exchange(encode_request(request, version, 7, "peer"))[4:]
        assert data, "the broker closed the connection"
        return decode(response, version, data, decode_response_header(response, version, data)[1])[0]

    def is_closed(self) -> bool:
        return self._socket.recv(1) == b""

    def log_in(self, user: str, password: str, mechanism: str = "PLAIN") -> SaslAuthenticateResponse:
        self._handshake(mechanism)
        return self._authenticate(f"\0{user}\0{password}".encode())

    def log_in_by_scram(
        self, user: str, password: str, *, is_token: bool = False, mechanism: str = "SCRAM-SHA-256"
    ) -> SaslAuthenticateResponse:
        """The last response: that of the proof, unless the broker refused before."""
        client = ScramClient(mechanism, user, password, secrets.token_urlsafe(24), is_token=is_token)
        self._handshake(mechanism)
        first = self._authenticate(client.begin())
        if first.error_code:
            return first
        proof = client.respond(bytes(first.auth_bytes))
        assert proof is not None
        return self._authenticate(proof)

    def metadata(self) -> bytes:
        return self.send(ApiKey.METADATA, 1, encode(MetadataRequest(topics=[]), 1))

    def _handshake(self, mechanism: str) -> None:
        asked = self.send(ApiKey.SASL_HANDSHAKE, 1, encode(SaslHandshakeRequest(mechanism=mechanism), 1))
        assert decode(SaslHandshakeResponse, 1, asked)[0].error_code == ErrorCode.NONE

    def _authenticate(self, message: bytes) -> SaslAuthenticateResponse:
        response: SaslAuthenticateResponse = decode(
            SaslAuthenticateResponse,
            1,
            self.send(ApiKey.SASL_AUTHENTICATE, 1, encode(SaslAuthenticateRequest(auth_bytes=message), 1)),
        )[0]
        return response

    def _exchange(self, frame: bytes) -> bytes:
        self._socket.sendall(frame)
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            received = self._socket.recv(65536)
            if not received:
                return b""
            data += received
        return data
