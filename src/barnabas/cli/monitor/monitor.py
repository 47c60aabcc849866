"""The monitor while it runs: a collector looks at the cluster, and lines are drawn again until a key or a signal."""

import argparse
import asyncio
import os
import shutil
import signal
import sys
import time

from barnabas.cli.command import Refused
from barnabas.cli.exit_status import OK
from barnabas.cli.monitor.keys import press, raw_keys, split_keys
from barnabas.cli.monitor.picture import Choice, document_of, lines_of, rows_of
from barnabas.cli.output import print_json
from barnabas.console.clients import Clients
from barnabas.console.collector import Collector
from barnabas.console.recent import RecentHistory, values_of
from barnabas.console.view import ClusterView
from barnabas.errors import KafkaError
from barnabas.stop_signals import call_on_stop
from barnabas.terminal import Screen

FIRST_LOOK_SECONDS = 30.0
LINE_SECONDS = 5.0


class Monitor:
    """One run of it."""

    def __init__(self, config: dict[str, str], options: argparse.Namespace, choice: Choice) -> None:

        self._clients = Clients(config)
        self._options = options
        self._choice = choice
        self._recent: RecentHistory = RecentHistory()
        self._wake = asyncio.Event()
        self._is_done = False
        # Blocks of Unicode where the terminal has them.
        self._plain = "utf" not in (sys.stdout.encoding or "").lower()

    async def run(self) -> int:

        collector = Collector(self._clients)
        collector.listeners.append(self._on_view)
        call_on_stop(asyncio.get_running_loop(), self._stop)
        collector.start()
        try:
            if self._options.once:
                await self._once(collector)
            else:
                await self._live(collector)
        finally:
            await collector.close()
            await self._clients.close()
        return OK

    def _on_view(self, view: ClusterView, now: float) -> None:
        self._recent.record(now, values_of(view))

    def _stop(self) -> None:
        self._is_done = True
        self._wake.set()

    # --- one picture ---
    async def _once(self, collector: Collector) -> None:

        await self._first_looks(collector)
        if self._is_done:
            return
        if self._options.json:
            print_json(document_of(collector.view, self._choice))
        else:
            print(
                "\n".join(
                    self._lines(collector.view, len(collector.view.topics) + len(collector.view.groups) + 50)[:-1]
                )
            )

    async def _first_looks(self, collector: Collector) -> None:
        """Two of the offsets, since a rate is a difference, then all that belongs to the list. Raises Refused."""
        until = time.monotonic() + (self._options.timeout or FIRST_LOOK_SECONDS)
        while not collector.first_look.is_set() and not self._is_done:
            if time.monotonic() > until:
                raise Refused(f"the cluster does not respond: {collector.view.error or 'no response yet'}")
            await self._pause(0.1)
        if self._is_done:
            return
        await collector.ensure_topics(list(collector.view.topics))
        await self._pause(2.0)
        await collector.refresh()
        await collector.look_at_disks()

    # --- until it is ended ---
    async def _live(self, collector: Collector) -> None:

        if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            await self._lines_now_and_then(collector)
            return
        loop = asyncio.get_running_loop()
        screen = Screen(sys.stdout)
        with raw_keys() as has_keys:
            if has_keys:
                loop.add_reader(sys.stdin.fileno(), self._on_input)
            loop.add_signal_handler(signal.SIGWINCH, self._wake.set)
            screen.enter()
            try:
                await self._draw_until_done(collector, screen)
            finally:
                screen.leave()
                if has_keys:
                    loop.remove_reader(sys.stdin.fileno())

    async def _draw_until_done(self, collector: Collector, screen: Screen) -> None:
        while not self._is_done:
            await self._refresh(collector)
            lines = self._lines(collector.view, shutil.get_terminal_size().lines - 1)
            titles = [number for number, line in enumerate(lines) if line.startswith(self._choice.shown.upper())]
            screen.draw(lines, bold=[0, *titles])
            await self._pause(self._options.interval)
            while self._choice.is_paused and not self._is_done:
                await self._pause(60.0)

    async def _refresh(self, collector: Collector) -> None:
        """What is looked at is fresh, however large the cluster is."""

        if collector.view.error or not collector.first_look.is_set():
            return
        first = self._choice.first
        names = [row["name"] for row in rows_of(collector.view, self._choice)[first : first + 50]]
        try:
            if self._choice.shown == "topics":
                await collector.ensure_topics(names)
            elif self._choice.shown == "groups":
                await collector.ensure_groups(names)
        except KafkaError:
            pass  # the collector says so in the view, if it lasts

    def _on_input(self) -> None:

        read = os.read(sys.stdin.fileno(), 1024)
        for key in split_keys(read.decode(errors="replace")):
            self._is_done = self._is_done or not press(self._choice, key)
        if not read:
            self._is_done = True
        self._wake.set()

    async def _lines_now_and_then(self, collector: Collector) -> None:
        """Where lines cannot be drawn again."""
        while not self._is_done:
            await self._pause(max(LINE_SECONDS, self._options.interval))
            view = collector.view
            state = f"error {view.error}" if view.error else f"{view.rate:,.0f} records/s, lag {view.lag:,}"
            counts = f"{len(view.brokers)} brokers, {view.partitions:,} partitions, {len(view.groups):,} groups"
            print(f"{time.strftime('%H:%M:%S')} {counts}, {view.out_of_sync} out of sync: {state}", flush=True)

    def _lines(self, view: ClusterView, height: int) -> list[str]:

        return lines_of(view, self._recent, self._choice, time.time(), height, plain=self._plain)

    async def _pause(self, length: float) -> None:
        """Ends early at a key or a stop."""
        try:
            await asyncio.wait_for(self._wake.wait(), length)
        except TimeoutError:
            pass
        self._wake.clear()
