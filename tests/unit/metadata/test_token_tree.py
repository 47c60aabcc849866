"""Delegation tokens in the store: Kafka's paths and JSON, and what a controller that loads the tree finds."""

import json

from lone_controller import LoneController

from barnabas.machines.controller.delegation_tokens import CreateToken, ExpireToken, RenewToken
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.metadata.token_tree import decode_token, token_path


def test_tokens_lie_where_kafka_had_them() -> None:
    controller = LoneController(MemoryStore())
    (record,) = controller.run(CreateToken("User:a b", "User:d*", ("User:c,=",), 5000, 1000))
    (token,) = controller.machine.image.tokens.values()
    assert record == (token,)
    assert controller.json(f"/delegation_token/tokens/{token.token_id}") == {
        "version": 3,
        "owner": "User%3Aa%20b",
        "tokenRequester": "User%3Ad%2A",
        "renewers": ["User%3Ac%2C%3D"],
        "issueTimestamp": 0,
        "maxTimestamp": 5000,
        "expiryTimestamp": 1000,
        "tokenId": token.token_id,
    }
    assert controller.load().tokens == {token.token_id: token}
    controller.run(RenewToken(token.token_id, "User:a b", 2000))
    assert controller.load().tokens == {token.token_id: token._replace(expires_at_ms=2000)}
    controller.run(ExpireToken(token.token_id, "User:a b", -1))
    assert controller.store.get(token_path(token.token_id)) is None
    assert controller.machine.image.tokens == controller.load().tokens == {}


def test_a_token_of_an_older_kafka() -> None:
    """Before version 3 there was nobody who asks for somebody else."""
    value = {"version": 2, "owner": "User%3Aa", "renewers": [], "issueTimestamp": 1, "maxTimestamp": 3}
    token = decode_token(json.dumps({**value, "expiryTimestamp": 2, "tokenId": "id"}).encode())
    assert (token.requester, token.issued_at_ms, token.expires_at_ms, token.max_at_ms) == ("User:a", 1, 2, 3)
