"""DescribeCluster (key 60), v0-v2: cluster id, controller and brokers (KIP-700). All versions are flexible.

v1 endpoint type: brokers or controllers (KIP-919); v2 fenced brokers (KIP-1073).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@message(api_key=ApiKey.DESCRIBE_CLUSTER, versions=(0, 2), flexible=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = field(BOOL)
    endpoint_type: int = field(INT8, since=1, default=1)
    include_fenced_brokers: bool = field(BOOL, since=2)


@struct
class DescribeClusterBroker:
    broker_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=0, default=None)
    is_fenced: bool = field(BOOL, since=2)


@message(api_key=ApiKey.DESCRIBE_CLUSTER, versions=(0, 2), flexible=0)
class DescribeClusterResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    endpoint_type: int = field(INT8, since=1, default=1)
    cluster_id: str = field(STRING)
    controller_id: int = field(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = field(array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(INT32, default=-(2**31))
