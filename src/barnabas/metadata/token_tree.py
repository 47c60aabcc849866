"""Where delegation tokens lie in the store, and in which JSON: as Kafka kept them in ZooKeeper.

    /delegation_token/tokens/ID     {"version":3,"owner":"User%3Aalice","tokenRequester":...,"renewers":[...],...}

Principals are quoted, as Kafka's are. There is nothing secret in it: the HMAC is made of the id and the brokers' key.
"""

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.metadata.store import Node

TOKENS: Final = "/delegation_token/tokens"


def token_path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: DelegationToken) -> bytes:
    value = {
        "version": 3,
        "owner": _quoted(token.owner),
        "tokenRequester": _quoted(token.requester),
        "renewers": [_quoted(each) for each in token.renewers],
        "issueTimestamp": token.issued_at_ms,
        "maxTimestamp": token.max_at_ms,
        "expiryTimestamp": token.expires_at_ms,
        "tokenId": token.token_id,
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_token(data: bytes) -> DelegationToken:
    """Before version 3 nobody could ask for somebody else."""
    value = json.loads(data)
    owner = unquote(value["owner"])
    return DelegationToken(
        token_id=value["tokenId"],
        owner=owner,
        requester=unquote(value["tokenRequester"]) if "tokenRequester" in value else owner,
        renewers=tuple(unquote(each) for each in value["renewers"]),
        issued_at_ms=value["issueTimestamp"],
        expires_at_ms=value["expiryTimestamp"],
        max_at_ms=value["maxTimestamp"],
    )


def read_tokens(nodes: Mapping[str, Node]) -> dict[str, DelegationToken]:
    """By id. A folder of ZooKeeper's has no data."""
    tokens = (
        decode_token(node.data) for path, node in sorted(nodes.items()) if path.startswith(f"{TOKENS}/") and node.data
    )
    return {token.token_id: token for token in tokens}


def _quoted(principal: str) -> str:
    return quote(principal, safe="")
