"""`/metrics`, `/health/live` and `/health/ready`, on `metrics.listener`.

One scrape runs at a time, in slices of the loop; requests that come meanwhile share the next one. So any number of
scrapers cost no more than one, and each gets values that are newer than its request.
"""

import asyncio
import logging
import time
from collections.abc import Generator
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from barnabas.config.monitoring import MetricsAddress
from barnabas.net.deferred import Deferred
from barnabas.net.http_request import HttpRequest, HttpResponse, text_response
from barnabas.net.http_server import HttpServer
from barnabas.server.metrics.broker_series import (
    LoopIdleness,
    add_broker,
    add_delayed,
    add_mqtt,
    add_process,
    add_requests,
    add_traffic,
)
from barnabas.server.metrics.client_series import add_clients
from barnabas.server.metrics.exposition import OPEN_METRICS, TEXT, Samples
from barnabas.server.metrics.group_series import add_groups
from barnabas.server.metrics.lag_time import LagTimes
from barnabas.server.metrics.partition_series import add_cluster, add_partitions
from barnabas.server.metrics.process import ProcessFigures, read_process
from barnabas.transport.channel import Network

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

logger = logging.getLogger(__name__)

RUNNING = 3


class MetricsEndpoint:
    def __init__(self, broker: "Broker", network: Network, executor: Executor) -> None:
        self._broker = broker
        self._executor = executor
        self._times = LagTimes(broker.record_work)
        idle_ns = broker.loop_idle_ns()
        self._idleness = None if idle_ns is None else LoopIdleness(idle_ns, time.monotonic_ns())
        self._server = HttpServer(self.handle, network, broker.timers)
        self._waiting: list[tuple[bool, Deferred[HttpResponse]]] = []
        self._scraping: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        return self._server.address

    @property
    def url(self) -> str:
        """Of the listener, empty if there is none."""
        address = self._server.address
        if address is None:
            return ""
        host, port = address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self, address: MetricsAddress) -> None:
        """A port that cannot be had is only logged: a broker without metrics serves its clients all the same."""
        try:
            await self._server.start(address.host, address.port, or_next=address.or_next)
        except OSError as error:
            logger.warning("no metrics: cannot listen on %s:%d: %s", address.host, address.port, error.strerror)
            return
        if address.port and self._server.address != (address.host, address.port):
            logger.warning("port %d is taken: metrics on %s/metrics", address.port, self.url)
            return
        logger.info("metrics on %s/metrics", self.url)

    async def stop(self) -> None:
        self._server.stop()
        if self._scraping is not None:
            self._scraping.cancel()
            await asyncio.gather(self._scraping, return_exceptions=True)
        await self._times.stop()

    def handle(self, request: HttpRequest) -> HttpResponse | Deferred[HttpResponse]:
        if request.path == "/metrics":
            response: Deferred[HttpResponse] = Deferred()
            self._waiting.append(("application/openmetrics-text" in request.headers.get("accept", ""), response))
            if self._scraping is None:
                self._scraping = asyncio.get_running_loop().create_task(self._scrape_all(), name="metrics")
            return response
        if request.path == "/health/live":
            return text_response(200, "ok\n")
        if request.path == "/health/ready":
            fault = self._not_ready()
            return text_response(200, "ok\n") if fault is None else text_response(503, f"{fault}\n")
        return text_response(404, "there is /metrics, /health/live and /health/ready\n")

    def _not_ready(self) -> str | None:
        broker = self._broker
        if broker.state != RUNNING:
            return "the broker is starting or stopping"
        own = broker.cluster.image.brokers.get(broker.node_id)
        if own is None or own.is_fenced:
            return "the broker is not in the cluster at the moment"
        if any(directory.is_offline for directory in broker.log_directories.directories):
            return "a log directory has failed"
        return None

    async def _scrape_all(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                try:
                    await self._scrape(waiting)
                except Exception as error:
                    for _, response in waiting:
                        response.fail(error)
        finally:
            self._scraping = None

    async def _scrape(self, waiting: list[tuple[bool, Deferred[HttpResponse]]]) -> None:
        figures = await asyncio.get_running_loop().run_in_executor(self._executor, read_process)
        samples = Samples()
        slices = self._broker.dispatcher.slices
        collected = slices.run(self._collect(samples, figures))
        if isinstance(collected, Deferred):
            await collected
        for open_metrics in {wanted for wanted, _ in waiting}:
            rendered = slices.run(samples.render(open_metrics=open_metrics))
            parts = await rendered if isinstance(rendered, Deferred) else rendered
            for wanted, response in waiting:
                if wanted is open_metrics:
                    response.complete(HttpResponse(200, OPEN_METRICS if open_metrics else TEXT, parts))

    def _collect(self, samples: Samples, figures: ProcessFigures | None) -> Generator[None, None, None]:
        broker = self._broker
        yield from add_cluster(samples, broker)
        yield from add_partitions(samples, broker)
        yield from add_traffic(samples, broker)
        yield from add_groups(samples, broker, self._times)
        yield from add_requests(samples, broker)
        add_broker(samples, broker, self._idleness)
        yield from add_clients(samples, broker)
        add_mqtt(samples, broker)
        add_delayed(samples, broker)
        add_process(samples, figures)
