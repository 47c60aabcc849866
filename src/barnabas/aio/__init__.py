"""The clients for asyncio: the same as in `barnabas`, with `await`.

    from barnabas.aio import Producer, Consumer, Admin

They share everything with the blocking ones but the last step, waiting; see `barnabas.client.facade`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.admin.aio import Admin
    from barnabas.client.consumer.aio import Consumer
    from barnabas.client.producer.aio import Producer

__all__ = ["Admin", "Consumer", "Producer"]


if not TYPE_CHECKING:  # type checkers must see a name that does not exist

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'barnabas.aio' has no attribute {name!r}")
        value = getattr(import_module(f"barnabas.client.{name.lower()}.aio"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
