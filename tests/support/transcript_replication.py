"""Plays the transcripts of replication (`tests/transcripts/replication`): one partition, real logs, no sockets.

    brokers 1 2 3 [min-isr=2]
    decide leader=1 epoch=0 isr=1,2,3 [seen-by=1,2] [leaving=3]   the controller's decision reaches everybody, or some
    see 3                                  the last decision reaches a broker that had not seen it
    produce 1 a [acks=1]                   to a leader (or who takes itself for one)
    fetch 2                                a follower sends its fetch
    serve 2                                its leader handles it
    deliver 2                              the response arrives
    copy 2 [times=2]                       all three
    tick 600                               time passes, then leaders look for replicas that lag
    restart 2 [epoch=25]                   killed and started again: the high watermark is that of the checkpoint
    wipe 2                                 the same, with an empty disk
    recreate                               another topic of the same name takes the place of this one
    reject 1                               the controller rejects the ISR that 1 has asked for
    delete-before 1 2                      DeleteRecords

After each line: what was noted, then the replicas that have changed, as values and their leader epochs.
"""

import asyncio
import shutil
from typing import Any

from replication_world import World

from barnabas.config.topic import TopicConfig

Options = dict[str, str]


class Player:
    def __init__(self) -> None:
        self.world = World()
        self._shown: dict[int, str] = {}

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]

        async def step() -> None:
            getattr(self, "_" + verb.replace("-", "_"))(plain, options)
            await asyncio.sleep(0)

        self.world.loop.run_until_complete(step())
        notes, self.world.notes = self.world.notes, []
        return [f"  {note}" for note in notes] + self._changes()

    def close(self) -> None:
        self.world.close()

    def __del__(self) -> None:
        if not self.world.loop.is_closed():
            self.close()

    def _changes(self) -> list[str]:
        lines = []
        for number in self.world.numbers:
            if self.world.broker(number).hosted is None:
                continue
            state = self.world.state(number)
            if self._shown.get(number) != state:
                self._shown[number] = state
                lines.append(f"  {state}")
        return lines

    def _brokers(self, plain: list[str], options: Options) -> None:
        self.world.topic_config = TopicConfig(min_insync_replicas=int(options.get("min-isr", "1")))
        self.world.begin([int(each) for each in plain])

    def _decide(self, plain: list[str], options: Options) -> None:
        image = self.world.decide(
            int(options["leader"]),
            int(options["epoch"]),
            _numbers(options["isr"]),
            leaving=_numbers(options.get("leaving", "")),
        )
        for number in _numbers(options["seen-by"]) if "seen-by" in options else self.world.numbers:
            self.world.broker(number).see(image)

    def _see(self, plain: list[str], options: Options) -> None:
        self.world.broker(int(plain[0])).see(self.world.image)

    def _produce(self, plain: list[str], options: Options) -> None:
        self.world.append(int(plain[0]), plain[1], int(options.get("acks", "-1")))

    def _fetch(self, plain: list[str], options: Options) -> None:
        broker = self.world.broker(int(plain[0]))
        if broker.followed is None:
            broker.note("follows nobody")
            return
        # What a timer would do after an error.
        fetcher = broker.fetchers[broker.followed[0]]
        fetcher._machine.wake(1 << 60)
        fetcher._is_paused = False
        fetcher.fetch()

    def _serve(self, plain: list[str], options: Options) -> None:
        broker = self.world.broker(int(plain[0]))
        for link in broker.links.values():
            requests, link.requests = link.requests, []
            for body, response in requests:
                link.responses.append((self.world.broker(link.leader).handle_fetch(body), response))

    def _deliver(self, plain: list[str], options: Options) -> None:
        broker = self.world.broker(int(plain[0]))
        for link in broker.links.values():
            responses, link.responses = link.responses, []
            for body, response in responses:
                response.complete(memoryview(body))

    def _copy(self, plain: list[str], options: Options) -> None:
        for _ in range(int(options.get("times", "1"))):
            self._fetch(plain, {})
            self._serve(plain, {})
            self._deliver(plain, {})

    def _tick(self, plain: list[str], options: Options) -> None:
        self.world.clock.advance(int(plain[0]))
        for number in self.world.numbers:
            broker = self.world.broker(number)
            if broker.hosted is not None:
                broker.replicas.shrink_isr(broker.hosted)

    def _restart(self, plain: list[str], options: Options) -> None:
        broker = self.world.broker(int(plain[0]))
        broker.stop(clean=False)
        broker.epoch = int(options.get("epoch", broker.epoch))
        broker.start()
        broker.see(self.world.image)

    def _wipe(self, plain: list[str], options: Options) -> None:
        broker = self.world.broker(int(plain[0]))
        broker.stop(clean=False)
        shutil.rmtree(broker.path)
        broker.start()
        broker.see(self.world.image)

    def _recreate(self, plain: list[str], options: Options) -> None:
        self.world.topic_id = bytes([self.world.topic_id[0] + 1]) * 16

    def _reject(self, plain: list[str], options: Options) -> None:
        hosted = self.world.broker(int(plain[0])).hosted
        assert hosted is not None
        hosted.on_isr_change_rejected()

    def _delete_before(self, plain: list[str], options: Options) -> None:
        hosted: Any = self.world.broker(int(plain[0])).hosted
        hosted.log.delete_records_before(int(plain[1]))
        hosted.on_watermark_moved()


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]
