"""What becomes of records that are still buffered when nobody closed their producer.

At the end of the interpreter the I/O thread, a daemon, would die with them without a word. Instead they are sent, for a
few seconds at most, and a warning says that the producer should be closed; what is left then is named as lost. If the
producer is garbage collected before (`unclosed`), there is as much time as records have anyway. Called once by each
core, and by each facade.
"""

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.client.io_thread import IoThread
from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.producer.core import ProducerCore

logger = logging.getLogger(__name__)
PATIENCE_S: Final = 5.0


def finish_at_exit(core: "ProducerCore", io: IoThread) -> None:
    reference = weakref.ref(core)
    pid = os.getpid()

    def at_exit() -> None:
        found = reference()
        if found is not None and os.getpid() == pid and not io.stopped:
            _finish(found, io)

    try:
        _register(at_exit)
    except RuntimeError:
        pass  # the interpreter is ending already: nothing can be waited for


async def finish_collected(core: "ProducerCore") -> None:
    """On the I/O thread, when the facade is gone. Deliveries that somebody kept hear of it as always."""
    failed_before = core.meters.failed_records
    await core.close()
    _name_lost(core, failed_before)


def _register(function: Callable[[], None]) -> None:
    """Before the threads of executors end, if that is offered: they look up the names of brokers."""
    getattr(threading, "_register_atexit", atexit.register)(function)


def _finish(core: "ProducerCore", io: IoThread) -> None:
    waiting = core.unacknowledged()
    if not waiting:
        return
    logger.warning("a producer was not closed and has %d records to send: call close() before the end", waiting)
    failed_before = core.meters.failed_records
    try:
        io.wait(core.close(PATIENCE_S), PATIENCE_S + 1)
    except KafkaError as error:
        logger.error("records of a producer that was not closed may be lost: %s", error.message)
        return
    _name_lost(core, failed_before)


def _name_lost(core: "ProducerCore", failed_before: int) -> None:
    lost = core.meters.failed_records - failed_before
    if lost:
        logger.error("%d records of a producer that was not closed were not delivered", lost)
