"""Errors that mean a shortage (disk space, descriptors, memory), while the disk itself works."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
PASSING = (errno.ENOSPC, errno.EDQUOT, *NO_DESCRIPTORS, errno.ENOMEM)
"""The operation can be retried."""


@contextmanager
def passing_errors_logged(doing: str) -> Iterator[None]:
    """For files that can be rebuilt: if there is no room for one, that is logged and the work continues."""
    try:
        yield
    except OSError as error:
        if error.errno not in PASSING:
            raise
        logger.warning("%s failed for now: %s", doing, error)
