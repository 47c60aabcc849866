"""Records that are still buffered when nobody closed their producer.

At the end of the interpreter the I/O thread, a daemon, would die with them. Instead they are sent, for a few seconds at
most, and a warning says that the producer should be closed. Records that are left then are reported as lost. If the
producer is garbage collected before (`unclosed`), records have their usual delivery.timeout.ms.

Hooks of the interpreter cannot be removed, so there is one per process for all producers, and producers are referred to
weakly: a program may make and close any number of them. The hook for a fork is here for the same reason.
"""

import atexit
import logging
import os
import threading
import weakref
from typing import TYPE_CHECKING, Final

from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.producer.core import ProducerCore

logger = logging.getLogger(__name__)
PATIENCE_S: Final = 5.0


class _Watched:
    """The cores of this process that may have to be finished."""

    def __init__(self) -> None:
        self._cores: weakref.WeakSet[ProducerCore] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._has_hooks = False

    def add(self, core: "ProducerCore") -> None:
        with self._lock:
            self._cores.add(core)
            if self._has_hooks:
                return
            self._has_hooks = True
        if hasattr(os, "register_at_fork"):  # there is no fork on Windows
            os.register_at_fork(after_in_child=self._in_child)
        try:
            # Before the threads of executors end, if Python offers that: they look up the names of brokers.
            getattr(threading, "_register_atexit", atexit.register)(self._at_exit)
        except RuntimeError:
            pass  # the interpreter is ending already: nothing can be waited for

    def _in_child(self) -> None:
        """A child process has the cores but not their threads: `send` must raise there instead of waiting forever."""
        self._lock = threading.Lock()  # a thread of the parent may have held it
        for core in list(self._cores):
            core.intake.forked()

    def _at_exit(self) -> None:
        with self._lock:
            cores = list(self._cores)
        for core in cores:
            if not core.io.stopped and not core.io.is_forked:
                _finish(core)


_WATCHED: Final = _Watched()


def watch(core: "ProducerCore") -> None:
    """From now on the end of the interpreter finishes this core, and a fork makes its copy unusable."""
    _WATCHED.add(core)


async def finish_collected(core: "ProducerCore") -> None:
    """Closes the core on the I/O thread after its facade was collected. Deliveries that are kept complete as always."""
    failed_before = core.meters.failed_records
    await core.close()
    _report_lost(core, failed_before)


def _finish(core: "ProducerCore") -> None:
    waiting = core.unacknowledged()
    if not waiting:
        return
    logger.warning("a producer was not closed and has %d records to send: call close() before the end", waiting)
    failed_before = core.meters.failed_records
    try:
        core.io.wait(core.close(PATIENCE_S), PATIENCE_S + 1)
    except KafkaError as error:
        logger.error("records of a producer that was not closed may be lost: %s", error.message)
        return
    _report_lost(core, failed_before)


def _report_lost(core: "ProducerCore", failed_before: int) -> None:
    lost = core.meters.failed_records - failed_before
    if lost:
        logger.error("%d records of a producer that was not closed were not delivered", lost)
