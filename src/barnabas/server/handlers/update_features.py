"""UpdateFeatures (key 57), v0-v2: raises or lowers the level of features (KIP-584).

Features are on from the start, at the level of Kafka 4.1, and have no other: to set the level that is in force
succeeds, any other is INVALID_UPDATE_VERSION. As in Kafka from 4.0 on, all updates fail with the first that does.
v1 types of upgrade, dry runs; v2 no results by feature.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.features import FEATURES
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_update_features(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_update_features(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for update in request.feature_updates:
        fault = _fault_of(update)
        if fault is not None:
            message = f"The update failed for all features since the following feature had an error: {fault}"
            return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=message)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_code=ErrorCode.NONE, error_message=None)
        for update in request.feature_updates
    ]
    return UpdateFeaturesResponse(error_code=ErrorCode.NONE, error_message=None, results=results)


def _fault_of(update: FeatureUpdateKey) -> str | None:
    level = FEATURES.get(update.feature)
    if level == update.max_version_level:
        return None
    fault = f"Invalid update version {update.max_version_level} for feature {update.feature}. "
    if level is None:
        return fault + "The broker does not support this feature."
    return fault + f"The broker only supports version {level}."


def fail_update_features(
    context: RequestContext, request: UpdateFeaturesRequest, error: ErrorCode
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.UPDATE_FEATURES,
    min_version=0,
    max_version=2,
    request=UpdateFeaturesRequest,
    handle=handle_update_features,
    fail=fail_update_features,
    checks_access=True,
)
