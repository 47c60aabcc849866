"""ApiVersions (key 18), v0-v4: what this broker speaks.

A version that is too high gets a v0 response with UNSUPPORTED_VERSION and the list (see dispatch). v3 the client names
its software and features come back (KIP-584, KIP-511); v4 lists supported features whose range starts at 0, which
older clients cannot read.
"""

import re

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas.server.dispatch import Handler
from barnabas.server.features import FEATURES, LOWEST_SUPPORTED
from barnabas.server.request import RequestContext

FIRST_FEATURES_VERSION = 3
FIRST_MINIMUM_0_VERSION = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle_api_versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.version >= FIRST_FEATURES_VERSION and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    if context.version >= FIRST_FEATURES_VERSION:
        context.connection.software = (request.client_software_name, request.client_software_version)
    return _list(context, ErrorCode.NONE)


def fail_api_versions(context: RequestContext, request: ApiVersionsRequest, error: ErrorCode) -> ApiVersionsResponse:
    return _list(context, error)


def _refuse_version(context: RequestContext) -> ApiVersionsResponse:
    return _list(context, ErrorCode.UNSUPPORTED_VERSION)


def _list(context: RequestContext, error: ErrorCode) -> ApiVersionsResponse:
    broker = context.broker
    serves_metrics = broker.client_metrics.is_served
    rows = [
        row
        for row in broker.dispatcher.table.values()
        if row.is_advertised and (serves_metrics or not row.needs_metrics)
    ]
    response = ApiVersionsResponse(error_code=error, api_keys=[])
    for row in sorted(rows, key=lambda row: row.api_key):
        lowest = row.min_version if row.advertised_min_version is None else row.advertised_min_version
        response.api_keys.append(ApiVersion(api_key=row.api_key, min_version=lowest, max_version=row.max_version))
    if context.version >= FIRST_FEATURES_VERSION:
        _add_features(response, context.version)
    return response


def _add_features(response: ApiVersionsResponse, version: int) -> None:
    """Features are on from the start and never change, so their epoch is the first there is."""
    response.finalized_features_epoch = 0
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in FEATURES.items()
    ]
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=LOWEST_SUPPORTED[name], max_version=level)
        for name, level in FEATURES.items()
        if LOWEST_SUPPORTED[name] > 0 or version >= FIRST_MINIMUM_0_VERSION
    ]


HANDLER = Handler(
    api_key=ApiKey.API_VERSIONS,
    min_version=0,
    max_version=4,
    request=ApiVersionsRequest,
    handle=handle_api_versions,
    fail=fail_api_versions,
    on_unsupported_version=_refuse_version,
    checks_access=True,  # everybody may ask
)
