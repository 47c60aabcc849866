"""What each API costs: how many requests, their errors, and where their time went.

`dispatch` adds to it. A fast path counts every request and times every eighth; all others are timed. Kafka's stages, on
one event loop:

    local   the handler and the encoding of the response, while nothing else ran
    remote  waiting for records, replicas, a flush, the metadata store or a thread
    total   both

A request that waited for nothing is only counted in `local`: its `remote` is zero, and its total is the same.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import Array
from barnabas.server.metrics.durations import Durations

SAMPLE = 8
"""Of requests that a fast path takes, one in so many is timed."""
now_ns = time.monotonic_ns


class RequestMeter:
    """One API; Fetch has one for consumers and one for followers, as in Kafka."""

    __slots__ = (
        "count",
        "errors",
        "failed",
        "local",
        "local_of_waiting",
        "name",
        "remote",
        "waited",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.failed = 0
        """Requests with at least one error."""
        self.errors: dict[int, int] = {}
        """Code -> how often it was in a response."""
        self.local = Durations()
        self.local_of_waiting = Durations()
        """The same of requests whose response came later."""
        self.remote = Durations()
        self.waited = Durations()
        """From start to end, of those that had to wait."""

    def on_errors(self, codes: Iterable[int]) -> None:
        found = False
        errors = self.errors
        for code in codes:
            if code:
                found = True
                errors[code] = errors.get(code, 0) + 1
        if found:
            self.failed += 1


class RequestMeters:
    def __init__(self, api_keys: Iterable[ApiKey]) -> None:
        self._meters: dict[int, RequestMeter] = {int(key): RequestMeter(name_of(key)) for key in api_keys}
        self.produce = self._meters[ApiKey.PRODUCE] = RequestMeter("Produce")
        self.heartbeat = self._meters[ApiKey.HEARTBEAT] = RequestMeter("Heartbeat")
        self.fetch_consumer = self._meters[ApiKey.FETCH] = RequestMeter("FetchConsumer")
        self.fetch_follower = RequestMeter("FetchFollower")

    def of(self, api_key: int) -> RequestMeter:
        """Of an API that is in the table."""
        return self._meters[api_key]

    def __iter__(self) -> Iterator[RequestMeter]:
        return iter([*self._meters.values(), self.fetch_follower])


def name_of(api_key: ApiKey) -> str:
    """As Kafka spells it: LIST_OFFSETS is ListOffsets."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))


_ERROR_NAMES = {int(code): code.name for code in ErrorCode}


def error_name(code: int) -> str:
    return _ERROR_NAMES.get(code, str(code))


CODES_COUNTED = 1000
"""Of one response: those of a very large one are not all looked at."""
_readers: dict[type[Any], Callable[[Any, list[int]], None]] = {}
"""By the type of a message: derived from its declaration, so brokers in one process may share them."""


def error_codes(response: Any) -> list[int]:
    """The error codes of a message, at its top and in its parts."""
    codes: list[int] = []
    _reader(type(response))(response, codes)
    return codes


def _reader(cls: type[Any]) -> Callable[[Any, list[int]], None]:
    reader = _readers.get(cls)
    if reader is None:
        reader = _readers[cls] = _make_reader(cls)
    return reader


def _make_reader(cls: type[Any]) -> Callable[[Any, list[int]], None]:
    fields = cls.__schema__.fields
    has_code = "error_code" in fields
    parts = [
        (name, element)
        for name, declared in fields.items()
        if isinstance(declared.kind, Array)
        and isinstance(element := declared.kind.element, type)
        and _has_codes(element)
    ]

    def read(message: Any, codes: list[int]) -> None:
        if has_code:
            codes.append(message.error_code)
        for name, element in parts:
            reader = _reader(element)
            for part in getattr(message, name) or ():
                if len(codes) >= CODES_COUNTED:
                    return
                reader(part, codes)

    return read


def _has_codes(cls: type[Any]) -> bool:
    fields = cls.__schema__.fields
    return "error_code" in fields or any(
        isinstance(declared.kind, Array)
        and isinstance(declared.kind.element, type)
        and _has_codes(declared.kind.element)
        for declared in fields.values()
    )
