"""Several things in one command, of which some went wrong: the others are done, and are told before the failure is.

Imports the clients: only a verb that runs imports this.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from barnabas.client.admin import AdminError


@contextmanager
def telling_what_was_done(tell: Callable[[Mapping[Any, Any]], object]) -> Iterator[None]:
    """When a call about many things raises, `tell` gets those that went well, if any did; the failure goes on."""
    try:
        yield
    except AdminError as error:
        if error.results:
            tell(error.results)
        raise
