"""kill -9 of driver, executor and broker, at every step of a batch's commit, while records keep coming.

`KillRun` runs a pipeline against a broker with a trap (`warehouse_broker`), springs one trap after another, starts
again what was killed, and in the end lets the pipeline take what is left and compares all topics with the reference.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import Producer
from eventually import eventually
from warehouse_broker import VICTIMS, Trap, TrapBroker, sprung
from warehouse_pipeline import PipelineProcess
from warehouse_topics import Summary, check_warehouse

from barnabas import Admin
from barnabas.cli.commands.pipeline_topics import DEFAULT_NAME
from barnabas.client.admin.types import OffsetSpec
from barnabas.pipeline.generator import GeneratorOptions, generate

STEPS = ["INIT_PRODUCER_ID", "OFFSET_FETCH", "PRODUCE", "TXN_OFFSET_COMMIT", "END_TXN"]
"""What a task of a batch asks of the broker, in this order."""
DRIVER_STEPS = ["LIST_OFFSETS", "FETCH", "OFFSET_COMMIT"]
"""Planning a batch, reading it, and noting in the source's group that it is done."""


class Kill(NamedTuple):
    victim: str
    api: str
    after: bool
    number: int


def plan_kills(seed: int, count: int) -> list[Kill]:
    """Every victim at every step, before and after, as many as wanted: first of all at the commit, then at random."""
    random = Random(seed)
    steps = [(api, after) for api in [*STEPS, *DRIVER_STEPS] for after in (False, True)]
    commits = [(victim, *step) for step in steps if step[0] in ("END_TXN", "TXN_OFFSET_COMMIT") for victim in VICTIMS]
    others = [(victim, *step) for step in steps for victim in VICTIMS if (victim, *step) not in commits]
    random.shuffle(others)
    chosen = (commits + others)[:count]
    random.shuffle(chosen)
    return [Kill(*each, number=random.randint(1, 12)) for each in chosen]


class Traffic(threading.Thread):
    """Generated records, dirty ones and duplicates among them, at a steady rate; days pass quickly."""

    def __init__(self, bootstrap: str, seed: int, rate: float) -> None:
        super().__init__(name="traffic", daemon=True)
        self._servers = bootstrap
        self._rate = rate
        self._end = threading.Event()
        self._options = GeneratorOptions(seed=seed, devices=200, dirty=0.02, duplicates=0.02, step_ms=20_000)
        self.sent = 0
        self.failed: list[str] = []

    def run(self) -> None:
        settings = {"bootstrap.servers": self._servers, "enable.idempotence": True, "partitioner": "murmur2_random"}
        producer = Producer({**settings, "linger.ms": 20, "message.timeout.ms": 600_000, "log_level": 0})
        started = time.monotonic()
        for record in generate(self._options):
            producer.produce(record.topic, record.value, record.key, on_delivery=self._delivered)
            producer.poll(0)
            self.sent += 1
            if self._end.wait(max(0.0, started + self.sent / self._rate - time.monotonic())):
                break
        assert producer.flush(180) == 0, "records were not delivered"

    def stop(self) -> None:
        self._end.set()
        self.join()
        assert not self.failed, self.failed[:3]

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self.failed.append(str(error))


def is_all_taken(pipeline: PipelineProcess, bootstrap: str) -> bool:
    assert pipeline.alive, pipeline.printed()[-2000:]
    with Admin(bootstrap) as admin:
        done = admin.list_group_offsets(DEFAULT_NAME)
        ends = admin.list_offsets(dict.fromkeys(done, OffsetSpec.LATEST))
    return bool(done) and all(ends[tp].offset == note.offset for tp, note in done.items())


class KillRun:
    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        rate: float = 50.0,
        patience_s: float = 300.0,
        master: str = "local[2,4]",
        more_roots: Sequence[int] = (),
    ) -> None:
        """`more_roots`: processes below which a cluster's executors are; in local mode they are the pipeline's own."""
        self.seed = seed
        self.more_roots = more_roots
        self.rate = rate
        self.patience_s = patience_s
        self.broker = TrapBroker(directory / "broker")
        self.pipeline = PipelineProcess(directory, self.broker.bootstrap, master=master)
        self.starts: Counter[str] = Counter()
        self._started = time.monotonic()

    def run(self, kills: list[Kill], *, is_restarted: bool = True) -> Summary:
        """`is_restarted`: what is left is for a new run, after one more kill; else for the one that got over them."""
        print(f"seed {self.seed}; {len(kills)} kills, in this order:")
        for kill in kills:
            print("  ", *kill)
        with self.broker, self.pipeline:
            self.pipeline.command_of("generate", "--count", "1")
            self._tend()
            self.pipeline.wait_for("runs on", self.patience_s)  # or else what waits for a slow start would pile up
            traffic = Traffic(self.broker.bootstrap, self.seed, self.rate)
            traffic.start()
            try:
                for number, kill in enumerate(kills, 1):
                    self._spring(number, kill)
                self._tend_broker()
            finally:
                traffic.stop()
            self.say(f"{traffic.sent} records sent; the rest is taken")
            if is_restarted:
                self.pipeline.kill()
                self.pipeline.run_once(self.patience_s)
            else:
                eventually(lambda: is_all_taken(self.pipeline, self.broker.bootstrap), timeout=self.patience_s)
                assert self.pipeline.stop() == 0, self.pipeline.printed()[-2000:]
            summary = check_warehouse(self.broker.bootstrap)
        self.say(f"all equal: {summary}; starts: {dict(self.starts)}")
        return summary

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._started:7.1f} s  {text}", flush=True)

    def _spring(self, number: int, kill: Kill) -> None:
        deadline = time.monotonic() + self.patience_s
        run: subprocess.Popen[bytes] | None = None
        while (done := sprung(self.broker.trap_directory) if run is not None else None) is None:
            self._tend()
            if self.pipeline.process is not run:
                # A trap knows the processes of a run, so a new run needs it again.
                run = self.pipeline.process
                assert run is not None
                Trap(kill.api, kill.number, kill.after, kill.victim, [run.pid, *self.more_roots]).put(
                    self.broker.trap_directory
                )
            assert time.monotonic() < deadline, f"{kill} did not come; {self.pipeline.printed()[-600:]}"
            time.sleep(0.02)
        if kill.victim == "broker":
            eventually(lambda: not self.broker.alive)  # it tells what it does before it does it
        self.say(f"{number}. {done['trap']}: {len(done['killed'])} killed; batches {self.pipeline.batches()[-2:]}")

    def _tend(self) -> None:
        """What was killed runs again; what should have survived, and did not, is told."""
        self._tend_broker()
        if not self.pipeline.alive:
            if self.pipeline.process is not None:
                status = self.pipeline.process.wait()
                if status > 0:
                    self.say(f"the pipeline ended with {status}: {self.pipeline.printed()[-600:]}")
                    self.starts["after an error"] += 1
            self.pipeline.start()
            self.starts["pipeline"] += 1

    def _tend_broker(self) -> None:
        if not self.broker.alive:
            self.broker.start(self.patience_s)
            self.starts["broker"] += 1
