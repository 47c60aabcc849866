"""What a client takes from its surroundings: network, clock, randomness, and a thread for its I/O.

Outside of tests it is always the system's. A simulation runs whole clients on its own loop by setting `ENVIRONMENT` in
the context in which it makes them; nothing has to be passed through the constructors of the clients.
"""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.clock import Clock, Random, SystemClock
from barnabas.transport.channel import Network
from barnabas.transport.system import SystemNetwork

if TYPE_CHECKING:
    from barnabas.client.io_thread import IoThread


def _start_io_thread(name: str) -> IoThread:
    from barnabas.client.io_thread import IoThread

    return IoThread(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Network, clock, randomness and I/O threads of the clients."""

    network: Network
    clock: Clock
    new_random: Callable[[], Random]
    start_io: Callable[[str], IoThread]


SYSTEM = Environment(network=SystemNetwork(), clock=SystemClock(), new_random=random.Random, start_io=_start_io_thread)
ENVIRONMENT: contextvars.ContextVar[Environment] = contextvars.ContextVar("barnabas_environment", default=SYSTEM)


def environment() -> Environment:
    return ENVIRONMENT.get()
