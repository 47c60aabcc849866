"""ListConfigResources (key 74), v0-v1: names of resources that have settings. All versions are flexible.

v0 knows client metrics only; v1 resource types in request and response (KIP-1142).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@message(api_key=ApiKey.LIST_CONFIG_RESOURCES, versions=(0, 1), flexible=0)
class ListConfigResourcesRequest:
    resource_types: list[int] = field(array(INT8), since=1)


@struct
class ConfigResource:
    resource_name: str = field(STRING)
    resource_type: int = field(INT8, since=1, default=16, ignorable=True)


@message(api_key=ApiKey.LIST_CONFIG_RESOURCES, versions=(0, 1), flexible=0)
class ListConfigResourcesResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    config_resources: list[ConfigResource] = field(array(ConfigResource))
