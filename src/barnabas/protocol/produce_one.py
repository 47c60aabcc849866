"""The commonest Produce request and its response: compiled, or `produce_one_pure`, which explains the functions."""

from typing import TYPE_CHECKING, Protocol

from barnabas.twins import choose_twin

if TYPE_CHECKING:
    from barnabas.protocol.produce_one_pure import OneProduce


class ProduceOne(Protocol):
    def decode_one(self, frame: memoryview, /) -> "OneProduce | None": ...

    def encode_one(
        self, request: "OneProduce", base_offset: int, log_append_time_ms: int, log_start_offset: int, /
    ) -> bytes: ...


_twin: ProduceOne = choose_twin("barnabas.protocol.produce_one_native", "barnabas.protocol.produce_one_pure")
decode_one = _twin.decode_one
encode_one = _twin.encode_one
