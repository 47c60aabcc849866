"""Every message in every version, both directions: our bytes are kio's bytes, and come back as the same values."""

from typing import Any

import pytest
from kio_twin import assert_same_declaration, kio_bytes, kio_type, to_kio
from message_values import MessageValues

from barnabas.protocol import ApiKey, decode, encode
from barnabas.protocol.message_types import declared_apis, request_type, response_type
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.messages.default_principal_data import DefaultPrincipalData

UNKNOWN_TO_KIO = (ApiKey.CONTROLLED_SHUTDOWN,)
"""kio follows Kafka 4, which has removed it."""


def _every_message() -> list[Any]:
    cases: list[tuple[type[Any], str, str]] = [
        (ConsumerProtocolAssignment, "consumer_protocol_assignment", "data"),
        (ConsumerProtocolSubscription, "consumer_protocol_subscription", "data"),
        (DefaultPrincipalData, "default_principal_data", "data"),
    ]
    for key in declared_apis():
        if key in UNKNOWN_TO_KIO:
            continue
        cases += [(request_type(key), key.name.lower(), "request"), (response_type(key), key.name.lower(), "response")]
    return [
        pytest.param(cls, module, part, version, id=f"{cls.__name__}-v{version}")
        for cls, module, part in cases
        for version in range(cls.__schema__.min_version, cls.__schema__.max_version + 1)
    ]


@pytest.mark.parametrize(("cls", "module", "part", "version"), _every_message())
def test_bytes_equal_kios(cls: type[Any], module: str, part: str, version: int) -> None:
    entity_type = kio_type(module, version, part, cls.__name__)
    assert_same_declaration(cls, version, entity_type)
    for fill in (0.0, 0.4, 0.8, 0.8, 1.0):
        for round_ in range(2):
            seed = f"{cls.__name__} v{version} {fill} {round_}"
            message = MessageValues(seed, fill).message(cls, version)
            theirs = kio_bytes(to_kio(message, version, entity_type))
            assert encode(message, version) == theirs, seed
            assert decode(cls, version, theirs) == (message, len(theirs)), seed
