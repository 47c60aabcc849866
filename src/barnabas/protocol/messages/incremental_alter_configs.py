"""IncrementalAlterConfigs (key 44), v0-v1: set, delete, append to or subtract from single settings (KIP-339).

v1 flexible. Values stay out of repr: some are passwords.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class AlterableConfig:
    name: str = field(STRING)
    config_operation: int = field(INT8)
    value: str | None = field(STRING, nullable=0, secret=True)


@struct
class AlterConfigsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[AlterableConfig] = field(array(AlterableConfig))


@message(api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest:
    resources: list[AlterConfigsResource] = field(array(AlterConfigsResource))
    validate_only: bool = field(BOOL)


@struct
class AlterConfigsResourceResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)


@message(api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: int = field(INT32)
    responses: list[AlterConfigsResourceResponse] = field(array(AlterConfigsResourceResponse))
