"""The consumer: fetching, positions, groups. `Consumer` blocks; `barnabas.client.consumer.aio` has its asyncio twin.

Names are imported when they are first used: the admin client needs `offsets` only, and commands start with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.group.machine import GroupMetadata
    from barnabas.client.consumer.hooks import ConsumerInterceptor, RebalanceListener
    from barnabas.client.consumer.offsets import OffsetAndMetadata, OffsetAndTimestamp, SubscriptionPattern
    from barnabas.records.codec import ConsumerRecord

__all__ = [
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "GroupMetadata",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RebalanceListener",
    "SubscriptionPattern",
]

_HOMES = {
    "Consumer": "barnabas.client.consumer.consumer",
    "ConsumerInterceptor": "barnabas.client.consumer.hooks",
    "ConsumerRecord": "barnabas.records.codec",
    "GroupMetadata": "barnabas.client.consumer.group.machine",
    "RebalanceListener": "barnabas.client.consumer.hooks",
}


if not TYPE_CHECKING:  # type checkers must see a name that does not exist

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'barnabas.client.consumer' has no attribute {name!r}")
        value = getattr(import_module(_HOMES.get(name, "barnabas.client.consumer.offsets")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
