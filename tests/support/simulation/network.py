"""Bytes between the nodes of a simulation, with what a real network does to them.

Each direction of a connection keeps its order; everything else is drawn from the seed: delays, short reads and writes,
and so the order between connections. A cut direction holds bytes back, as TCP does, until it is healed or the
connection ends. `reset` ends connections as a firewall or a kill would.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.transport.channel import ResolvedAddress, SocketOptions
from barnabas.transport.parts import Memory, PartFile
from simulation.loop import VirtualLoop
from simulation.node import Node

WINDOW_BYTES = 256 * 1024
"""What one direction of a connection holds before its sender has to wait."""
FIRST_DESCRIPTOR = 1_000_000
SHORT_TRANSFER_SHARE = 0.02

Route = tuple[str, str]


class SimulatedChannel:
    """One end of a connection."""

    more_flag = 0
    is_encrypted = False

    def __init__(self, network: SimulatedNetwork, node: Node, own: tuple[str, int], peer_address: tuple[str, int]):
        self._network = network
        self.node = node
        self._own = own
        self._peer_address = peer_address
        self.fd = network.next_descriptor()
        self.peer: SimulatedChannel
        self.received = bytearray()
        self.in_transit: deque[tuple[float, bytes | None]] = deque()
        """On the way to this end, by arrival time; None is the end of the stream."""
        self.in_transit_bytes = 0
        self.ended = False
        self.was_reset = False
        self.closed = False
        self._shut = False

    # --- what brokers and clients call ---

    def fileno(self) -> int:
        return -1 if self.closed else self.fd

    def getsockname(self) -> tuple[str, int]:
        return self._own

    def getpeername(self) -> tuple[str, int]:
        return self._peer_address

    def recv_into(self, buffer: memoryview, /) -> int:
        self._check_open()
        if not self.received:
            if self.was_reset:
                raise ConnectionResetError("the connection was reset")
            if self.ended:
                return 0
            raise BlockingIOError
        count = self._network.portion(min(len(buffer), len(self.received)))
        buffer[:count] = self.received[:count]
        del self.received[:count]
        self._network.update(self)
        return count

    def send(self, data: Memory, flags: int = 0, /) -> int:
        self._check_open()
        if self.was_reset or self._shut:
            raise BrokenPipeError("the other end is gone")
        room = WINDOW_BYTES - self.peer.in_transit_bytes - len(self.peer.received)
        if room <= 0:
            raise BlockingIOError
        count = self._network.portion(min(room, len(data)))
        self._network.carry(self, bytes(memoryview(data)[:count]))
        return count

    def sendmsg(self, parts: Sequence[Memory], ancillary: tuple[()] = (), flags: int = 0, /) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: PartFile, position: int, count: int) -> int:
        self._check_open()
        room = WINDOW_BYTES - self.peer.in_transit_bytes - len(self.peer.received)
        if room <= 0 and not self.was_reset:
            raise BlockingIOError
        data = file.pread(min(count, max(room, 1)), position)
        return self.send(data) if data else 0

    def pending(self) -> int:
        return 0

    def expect(self, missing_bytes: int) -> None:
        """No hint is needed: waking up costs nothing here."""

    def shutdown(self, how: int, /) -> None:
        if how != socket.SHUT_RD and not self._shut:
            self._shut = True
            self._network.carry(self, None)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._network.on_closed(self)

    # --- what the loop and the network ask ---

    @property
    def is_readable(self) -> bool:
        return bool(self.received) or self.ended or self.was_reset

    @property
    def is_writable(self) -> bool:
        return self.was_reset or self.peer.in_transit_bytes + len(self.peer.received) < WINDOW_BYTES

    def on_reset(self) -> None:
        self.was_reset = True
        self.received.clear()
        self.in_transit.clear()
        self.in_transit_bytes = 0
        if not self.closed:
            self._network.update(self)

    def _check_open(self) -> None:
        if self.closed:
            raise OSError(9, "Bad file descriptor")


class SimulatedListener:
    def __init__(self, network: SimulatedNetwork, node: Node, address: tuple[str, int]) -> None:
        self._network = network
        self.node = node
        self._address = address
        self.fd = network.next_descriptor()
        self.backlog: deque[SimulatedChannel] = deque()

    def fileno(self) -> int:
        return self.fd

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def accept_channel(self, options: SocketOptions) -> tuple[SimulatedChannel, Any]:
        if not self.backlog:
            raise BlockingIOError
        channel = self.backlog.popleft()
        self._network.update(self)
        return channel, channel.getpeername()

    def close(self) -> None:
        self._network.on_listener_closed(self)

    @property
    def is_readable(self) -> bool:
        return bool(self.backlog)


class SimulatedNetwork:
    """The whole network; `of(node)` is what one node sees of it."""

    def __init__(self, loop: VirtualLoop, chance: random.Random, trace: Callable[..., None]) -> None:
        self._loop = loop
        self._chance = chance
        self._trace = trace
        self._context = contextvars.Context()  # deliveries belong to no node
        self._descriptors = FIRST_DESCRIPTOR
        self._ports: dict[str, int] = {}
        self._channels: dict[int, SimulatedChannel] = {}
        self._listeners: dict[int, SimulatedListener] = {}
        self._addresses: dict[tuple[str, int], SimulatedListener] = {}
        self._readable: dict[SimulatedChannel | SimulatedListener, None] = {}
        self._cuts: set[Route] = set()
        self._switched_off: set[str] = set()
        self.delay_s = (0.0001, 0.002)
        loop.virtual_selector.readiness = self

    def of(self, node: Node) -> NodeNetwork:
        return NodeNetwork(self, node)

    # --- faults ---

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from one node to the other; the way back is another route."""
        self._cuts.add((source, target))
        self._trace("cut", source, target)

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """One route, or all of them."""
        self._cuts -= {(source, target)} if source is not None and target is not None else set(self._cuts)
        self._trace("heal", source, target)
        for channel in list(self._channels.values()):
            self._schedule_arrival(channel)

    def is_cut(self, source: Node, target: Node) -> bool:
        return (source.name, target.name) in self._cuts

    def is_route_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts

    def switch_off(self, name: str) -> None:
        """The machine has no power: nobody refuses a connection, nobody answers at all."""
        self._switched_off.add(name)

    def switch_on(self, name: str) -> None:
        self._switched_off.discard(name)

    def reset(self, node: Node, other: Node | None = None) -> None:
        """Every connection of the node, or those with another one, is reset at both ends."""
        for channel in list(self._channels.values()):
            if channel.node is node and (other is None or channel.peer.node is other):
                self._reset_pair(channel)

    def drop_node(self, node: Node) -> None:
        """The node was killed: its sockets are gone, and the peers find out."""
        for listener in [each for each in self._listeners.values() if each.node is node]:
            self.on_listener_closed(listener)
        for channel in [each for each in self._channels.values() if each.node is node]:
            channel.close()

    # --- for the loop ---

    def readable(self) -> list[int]:
        return [end.fd for end in self._readable if not end.node.frozen]

    def update(self, end: SimulatedChannel | SimulatedListener) -> None:
        """Something came, or was taken: note whether there is something to read."""
        if end.is_readable:
            self._readable[end] = None
        else:
            self._readable.pop(end, None)

    def is_writable(self, fd: int) -> bool:
        channel = self._channels.get(fd)
        return channel is not None and channel.is_writable and not channel.node.frozen

    # --- for channels ---

    def next_descriptor(self) -> int:
        self._descriptors += 1
        return self._descriptors

    def portion(self, count: int) -> int:
        """All of it, or now and then less."""
        if count > 1 and self._chance.random() < SHORT_TRANSFER_SHARE:
            return self._chance.randint(1, count)
        return count

    def delay(self) -> float:
        return self._chance.uniform(*self.delay_s)

    def carry(self, source: SimulatedChannel, data: bytes | None) -> None:
        target = source.peer
        if target.closed:
            if data is not None and not target.was_reset:
                self.later(self.delay(), source.on_reset)  # the other kernel answers with a reset
            return
        last = target.in_transit[-1][0] if target.in_transit else 0.0
        arrival = max(last, self._loop.time() + self.delay())
        target.in_transit.append((arrival, data))
        target.in_transit_bytes += len(data or b"")
        self.later(arrival - self._loop.time(), self._arrive, target)

    def on_closed(self, channel: SimulatedChannel) -> None:
        self._forget(channel.fd)
        self._readable.pop(channel, None)
        del self._channels[channel.fd]
        peer = channel.peer
        if peer.closed or peer.was_reset:
            return
        if channel.received:
            self.later(self.delay(), peer.on_reset)  # unread bytes: the kernel resets instead of ending
        elif not channel._shut:
            self.carry(channel, None)

    def on_listener_closed(self, listener: SimulatedListener) -> None:
        if self._listeners.pop(listener.fd, None) is not None:
            self._forget(listener.fd)
            self._readable.pop(listener, None)
            del self._addresses[listener.getsockname()]
            for channel in listener.backlog:
                self._reset_pair(channel)

    def listen(self, node: Node, port: int) -> SimulatedListener:
        port = port or self._next_port(node.name)
        address = (node.name, port)
        if address in self._addresses:
            raise OSError(98, "Address already in use")
        listener = SimulatedListener(self, node, address)
        self._listeners[listener.fd] = self._addresses[address] = listener
        return listener

    async def connect(self, node: Node, address: tuple[str, int]) -> SimulatedChannel:
        await asyncio.sleep(2 * self.delay())
        listener = self._addresses.get(address)
        target = None if listener is None else listener.node
        while self._is_silent(node, address[0], target):
            await asyncio.sleep(0.2)  # the connection request is sent again
            listener = self._addresses.get(address)
            target = None if listener is None else listener.node
        if listener is None:
            raise ConnectionRefusedError(111, "Connection refused")
        own = (node.name, self._next_port(node.name))
        near = SimulatedChannel(self, node, own, address)
        far = SimulatedChannel(self, listener.node, address, own)
        near.peer, far.peer = far, near
        self._channels[near.fd], self._channels[far.fd] = near, far
        listener.backlog.append(far)
        self.update(listener)
        self._trace("connect", node.name, listener.node.name)
        return near

    def _is_silent(self, node: Node, host: str, target: Node | None) -> bool:
        if target is None:
            return host in self._switched_off
        return self.is_cut(node, target) or self.is_cut(target, node)

    def _next_port(self, host: str) -> int:
        port = self._ports[host] = self._ports.get(host, 20_000) + 1
        return port

    def _arrive(self, channel: SimulatedChannel) -> None:
        if channel.closed or channel.was_reset or self.is_cut(channel.peer.node, channel.node):
            return
        now = self._loop.time()
        while channel.in_transit and channel.in_transit[0][0] <= now + 1e-9:
            _, data = channel.in_transit.popleft()
            if data is None:
                channel.ended = True
            else:
                channel.in_transit_bytes -= len(data)
                channel.received += data
                self._trace("arrive", channel.node.name, channel.fd, len(data))
        self.update(channel)

    def _schedule_arrival(self, channel: SimulatedChannel) -> None:
        for arrival, _ in channel.in_transit:
            self.later(max(0.0, arrival - self._loop.time()), self._arrive, channel)

    def _reset_pair(self, channel: SimulatedChannel) -> None:
        channel.on_reset()
        channel.peer.on_reset()

    def later(
        self, delay: float, callback: Callable[..., None], *args: Any, context: contextvars.Context | None = None
    ) -> None:
        """Belongs to no node, unless a context says so."""
        self._loop.call_at(self._loop.time() + delay, callback, *args, context=context or self._context)

    def _forget(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)


class NodeNetwork:
    """`barnabas.transport.channel.Network`, as one node has it."""

    has_descriptors = False

    def __init__(self, network: SimulatedNetwork, node: Node) -> None:
        self._network = network
        self._node = node

    def own_name(self) -> str:
        return self._node.name

    async def listen(self, host: str, port: int, backlog: int, options: SocketOptions) -> list[SimulatedListener]:
        return [self._network.listen(self._node, port)]

    async def look_up(self, host: str, port: int) -> list[ResolvedAddress]:
        return [ResolvedAddress(socket.AF_INET, (host, port))]

    async def canonical_names(self, host: str, port: int) -> list[str]:
        return [host]

    async def connect(self, address: ResolvedAddress, options: SocketOptions) -> SimulatedChannel:
        return await self._network.connect(self._node, address.sockaddr)

    async def start_tls(self, channel: Any, context: ssl.SSLContext, server_hostname: str | None = None) -> Any:
        raise NotImplementedError("encrypted connections are tested on real sockets")
