"""AllocateProducerIds (key 67), v0: a broker asks the controller for a block of producer ids (KIP-730). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, field, message


@message(api_key=ApiKey.ALLOCATE_PRODUCER_IDS, versions=(0, 0), flexible=0)
class AllocateProducerIdsRequest:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


@message(api_key=ApiKey.ALLOCATE_PRODUCER_IDS, versions=(0, 0), flexible=0)
class AllocateProducerIdsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id_start: int = field(INT64)
    producer_id_len: int = field(INT32)
