"""ApiVersions (key 18), v0-v4: which APIs and versions a broker supports.

The first request of most clients. A version the broker does not know gets a v0 response with UNSUPPORTED_VERSION
and the range for this API (KIP-511). v1 throttle time; v3 flexible body (never the response header), client name and
version, features (KIP-584); v4 features with a lowest version of 0 are listed.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, INT64, STRING, array, field, message, struct


@message(api_key=ApiKey.API_VERSIONS, versions=(0, 4), flexible=3)
class ApiVersionsRequest:
    client_software_name: str = field(STRING, since=3, ignorable=True)
    client_software_version: str = field(STRING, since=3, ignorable=True)


@struct
class ApiVersion:
    api_key: int = field(INT16)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


@struct
class SupportedFeatureKey:
    name: str = field(STRING)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


@struct
class FinalizedFeatureKey:
    name: str = field(STRING)
    max_version_level: int = field(INT16)
    min_version_level: int = field(INT16)


@message(api_key=ApiKey.API_VERSIONS, versions=(0, 4), flexible=3)
class ApiVersionsResponse:
    error_code: int = field(INT16)
    api_keys: list[ApiVersion] = field(array(ApiVersion))
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(array(SupportedFeatureKey), since=3, ignorable=True, tag=0)
    finalized_features_epoch: int = field(INT64, since=3, default=-1, ignorable=True, tag=1)
    finalized_features: list[FinalizedFeatureKey] = field(array(FinalizedFeatureKey), since=3, ignorable=True, tag=2)
    zk_migration_ready: bool = field(BOOL, since=3, ignorable=True, tag=3)
