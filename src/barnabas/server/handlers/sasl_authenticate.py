"""SaslAuthenticate (key 36), v0-v2: a step of SASL authentication.

Listeners are PLAINTEXT, where nobody authenticates: ILLEGAL_SASL_STATE, as on such a listener of Kafka.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NO_AUTHENTICATION = "SaslAuthenticate request received on a listener without authentication"


def handle_sasl_authenticate(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return _refuse(request, ErrorCode.ILLEGAL_SASL_STATE, NO_AUTHENTICATION)


def fail_sasl_authenticate(
    context: RequestContext, request: SaslAuthenticateRequest, error: ErrorCode
) -> SaslAuthenticateResponse:
    return _refuse(request, error, error.text)


def _refuse(request: SaslAuthenticateRequest, error: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=error, error_message=message)


HANDLER = Handler(
    api_key=ApiKey.SASL_AUTHENTICATE,
    min_version=0,
    max_version=2,
    request=SaslAuthenticateRequest,
    handle=handle_sasl_authenticate,
    fail=fail_sasl_authenticate,
)
