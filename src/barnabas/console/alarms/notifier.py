"""Collects what `Alarms` tells and hands it to the channels, grouped, off the event loop."""

import asyncio

from barnabas.console.alarms.alarms import Alarm
from barnabas.console.alarms.channels import Channel

GROUP_SECONDS = 5.0
"""What begins within this time of the first is one message."""
MOST_WAITING = 10_000


class Notifier:
    """`tell` is called on the loop. A channel that hangs delays only its own messages."""

    def __init__(self, channels: list[Channel], group_seconds: float = GROUP_SECONDS) -> None:
        self.channels = channels
        self._group_seconds = group_seconds
        self._queues: list[asyncio.Queue[Alarm]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for channel in self.channels:
            queue: asyncio.Queue[Alarm] = asyncio.Queue(MOST_WAITING)
            self._queues.append(queue)
            self._tasks.append(asyncio.create_task(self._run(channel, queue)))

    def tell(self, alarms: list[Alarm]) -> None:
        for queue in self._queues:
            for alarm in alarms:
                if not queue.full():
                    queue.put_nowait(alarm)

    async def _run(self, channel: Channel, queue: "asyncio.Queue[Alarm]") -> None:
        while True:
            group = [await queue.get()]
            await asyncio.sleep(self._group_seconds)
            while not queue.empty():
                group.append(queue.get_nowait())
            await asyncio.to_thread(channel.send, group)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
