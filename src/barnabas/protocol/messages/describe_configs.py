"""DescribeConfigs (key 32), v1-v4: settings of topics, brokers and other resources.

v1 sources and synonyms (KIP-226); v3 types and documentation (KIP-569); v4 flexible. Values stay out of repr: some
are passwords.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class DescribeConfigsResource:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configuration_keys: list[str] | None = field(array(STRING), nullable=1)


@message(api_key=ApiKey.DESCRIBE_CONFIGS, versions=(1, 4), flexible=4)
class DescribeConfigsRequest:
    resources: list[DescribeConfigsResource] = field(array(DescribeConfigsResource))
    include_synonyms: bool = field(BOOL)
    include_documentation: bool = field(BOOL, since=3)


@struct
class DescribeConfigsSynonym:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable=1, secret=True)
    source: int = field(INT8)


@struct
class DescribeConfigsResourceResult:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable=1, secret=True)
    read_only: bool = field(BOOL)
    config_source: int = field(INT8, default=-1)
    is_sensitive: bool = field(BOOL)
    synonyms: list[DescribeConfigsSynonym] = field(array(DescribeConfigsSynonym))
    config_type: int = field(INT8, since=3, ignorable=True)
    documentation: str | None = field(STRING, since=3, nullable=3, ignorable=True)


@struct
class DescribeConfigsResult:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    configs: list[DescribeConfigsResourceResult] = field(array(DescribeConfigsResourceResult))


@message(api_key=ApiKey.DESCRIBE_CONFIGS, versions=(1, 4), flexible=4)
class DescribeConfigsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[DescribeConfigsResult] = field(array(DescribeConfigsResult))
