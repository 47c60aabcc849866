"""UpdateFeatures (key 57), v0-v2: finalized feature levels (KIP-584). All versions are flexible.

v1 validate only, upgrade type (KIP-778); v2 one top-level error instead of one per feature.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class FeatureUpdateKey:
    feature: str = field(STRING)
    max_version_level: int = field(INT16)
    allow_downgrade: bool = field(BOOL, until=0)
    upgrade_type: int = field(INT8, since=1, default=1)


@message(api_key=ApiKey.UPDATE_FEATURES, versions=(0, 2), flexible=0)
class UpdateFeaturesRequest:
    timeout_ms: int = field(INT32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(array(FeatureUpdateKey))
    validate_only: bool = field(BOOL, since=1)


@struct
class UpdatableFeatureResult:
    feature: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)


@message(api_key=ApiKey.UPDATE_FEATURES, versions=(0, 2), flexible=0)
class UpdateFeaturesResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    results: list[UpdatableFeatureResult] = field(array(UpdatableFeatureResult), until=1, ignorable=True)
