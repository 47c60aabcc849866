"""SaslHandshake (key 17), v0-v1: the client names the SASL mechanism that it authenticates with.

Listeners are PLAINTEXT, where nobody authenticates: ILLEGAL_SASL_STATE, as on such a listener of Kafka.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_sasl_handshake(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return fail_sasl_handshake(context, request, ErrorCode.ILLEGAL_SASL_STATE)


def fail_sasl_handshake(
    context: RequestContext, request: SaslHandshakeRequest, error: ErrorCode
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.SASL_HANDSHAKE,
    min_version=0,
    max_version=1,
    request=SaslHandshakeRequest,
    handle=handle_sasl_handshake,
    fail=fail_sasl_handshake,
)
