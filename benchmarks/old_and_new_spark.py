"""What Spark reads and writes with an old and a new `format("barnabas")` cost, and an event in either pipeline."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from spark_worker import OURS, SparkWorker

from benchmarks.pipeline import Run, pipeline, sender, warm_up
from benchmarks.produce import SIZES, producer_performance
from benchmarks.session import Session
from benchmarks.spark import PARTITIONS, READ_COUNTS, WARM_UP, WRITE_COUNTS

EVENTS = 100_000


def run(session: Session, sources: dict[str, Path]) -> None:
    """Both drivers stay up and use the new broker."""
    host = session.contenders[-1]
    share = 3 if session.quick else 1
    with ExitStack() as stack:
        workers = {}
        for name, source in sources.items():
            folder = session.directory / f"spark-{name}"
            folder.mkdir()
            workers[name] = stack.enter_context(SparkWorker(OURS, folder, sources=source))
        for size in SIZES:
            topic, count = host.new_topic(PARTITIONS), READ_COUNTS[size] // share
            producer_performance(host.bootstrap, topic, count, size, "1")
            options = {"kafka.bootstrap.servers": host.bootstrap, "subscribe": topic}
            _turns(session, workers, f"Spark batch read, {size} B", count, "time_read", {"options": options})
            host.delete_topic(topic)
        for size in SIZES:
            topic, count = host.new_topic(PARTITIONS), WRITE_COUNTS[size] // share
            options = {"kafka.bootstrap.servers": host.bootstrap, "topic": topic}
            command = {"count": count, "size": size, "options": options}
            _turns(session, workers, f"Spark write, {size} B", count, "time_write", command)
            host.delete_topic(topic)


def _turns(
    session: Session, workers: dict[str, SparkWorker], title: str, count: int, do: str, command: dict[str, object]
) -> None:
    rate, cpu = f"{title}: rate", f"{title}: CPU of Spark per million"
    session.board.row(rate, "records/s")
    session.board.row(cpu, "s")
    for round_number in range(-WARM_UP, session.rounds):
        for name, worker in list(workers.items())[:: 1 if round_number % 2 == 0 else -1]:
            before = worker.cpu_seconds()
            took = float(worker.ask(do, **command)["seconds"])
            if round_number >= 0:
                session.board.add(rate, name, count / took)
                session.board.add(cpu, name, (worker.cpu_seconds() - before) / count * 1e6)


def run_pipeline(session: Session, sources: dict[str, Path]) -> None:
    """Each pipeline has its own broker, of its own revision, and works off the same backlogs."""
    titles = {part: f"pipeline, backlog: CPU of {part} per event" for part in ("broker", "jvm", "python")}
    for title in titles.values():
        session.board.row(title, "us")
    with ExitStack() as stack:
        running: dict[str, Run] = {}
        for name, source in sources.items():
            contender = stack.enter_context(session.fresh(name, "pipeline"))
            running[name] = stack.enter_context(pipeline(session, contender, source))
        for each in running.values():
            warm_up(each, 10)
        for round_number in range(-1, session.rounds):
            for name, each in list(running.items())[:: 1 if round_number % 2 == 0 else -1]:
                before, done = each.cpu(), each.sample().done
                with sender(each, 0, EVENTS):
                    pass
                each.wait_until_done(300, done + EVENTS)
                if round_number >= 0:
                    for part, seconds in each.cpu().items():
                        session.board.add(titles[part], name, (seconds - before[part]) / EVENTS * 1e6)
