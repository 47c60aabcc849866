"""How much of the clients' log a command shows: a failure is reported once, as the command's own line."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_level(wanted: int | None = None) -> Iterator[None]:
    """What the clients log from that level on, on stderr; None: nothing. Afterwards it is as it was."""
    logger = logging.getLogger("barnabas")
    before = logger.level
    if wanted is not None:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logger.setLevel(logging.CRITICAL if wanted is None else wanted)
    try:
        yield
    finally:
        logger.setLevel(before)
