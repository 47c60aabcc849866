"""What the I/O thread counts: requests and bytes per broker, and how long each kind of request took."""


class Timing:
    """How often something happened, how long it took in all, and at most: lately, and in the time before that."""

    __slots__ = ("count", "largest", "last_ms", "previous_largest", "rotated_ms", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self.previous_largest = 0.0
        self.rotated_ms = 0
        self.last_ms: int | None = None
        """When it happened last, where anybody wants to know."""

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        if value > self.largest:
            self.largest = value

    def peak(self, now_ms: int, window_ms: int) -> float:
        """The largest value of one to two windows, as they are read."""
        most = max(self.largest, self.previous_largest)
        if now_ms - self.rotated_ms >= window_ms:
            self.rotated_ms = now_ms
            self.previous_largest, self.largest = self.largest, 0.0
        return most


class NodeMeter:
    """One broker."""

    __slots__ = ("bytes_in", "latency", "of_api", "request_size")

    def __init__(self, of_api: dict[int, Timing]) -> None:
        self.request_size = Timing()
        self.bytes_in = 0
        self.latency = Timing()
        """Of its responses, in milliseconds."""
        self.of_api = of_api

    def responded(self, api_key: int, size: int, latency_ms: float, now_ms: int) -> None:
        self.bytes_in += size
        self.latency.add(latency_ms)
        timing = self.of_api.get(api_key)
        if timing is None:
            timing = self.of_api[api_key] = Timing()
        timing.add(latency_ms)
        timing.last_ms = now_ms


class NetworkMeters:
    """All brokers of a client."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.nodes: dict[int, NodeMeter] = {}
        self.of_api: dict[int, Timing] = {}
        """By kind of request; what it took until the response."""

    def node(self, node_id: int) -> NodeMeter:
        meter = self.nodes.get(node_id)
        if meter is None:
            meter = self.nodes[node_id] = NodeMeter(self.of_api)
        return meter

    def timing(self, *api_keys: int) -> Timing:
        """Of the first of these that was ever sent."""
        return next((self.of_api[key] for key in api_keys if key in self.of_api), Timing())
