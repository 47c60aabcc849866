"""What the engines' processes and networks do to a session, and what the stores make of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import pytest
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from eventually import eventually
from lone_controller import LoneController, create
from tcp_proxy import TcpProxy
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import store_at
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.store import (
    Create,
    Delete,
    MetadataStore,
    MetadataStoreError,
    OutcomeUnknownError,
    SessionExpiredError,
    SessionState,
    Set,
    StoreUnavailableError,
)

Ensemble: TypeAlias = EtcdEnsemble | ZooKeeperEnsemble
SESSION_MS = 8000
"""Enough for an ensemble to elect another leader while one of its nodes is frozen."""
OPTIONS = EngineOptions(session_timeout_ms=SESSION_MS, call_timeout_ms=6000)
PATIENCE = 120.0
HOLDER = """
import sys, threading
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import store_at
from barnabas.metadata.store import SessionExpiredError, SessionState
store = store_at(sys.argv[1], EngineOptions(session_timeout_ms=4000))
lost = threading.Event()
store.on_session_state = lambda state: lost.set() if state is SessionState.LOST else None
store.open()
store.create("/held", ephemeral=True)
print("ready", flush=True)
lost.wait()
try:
    store.create("/late")
except SessionExpiredError:
    print("lost", flush=True)
store.open()
store.create("/held", ephemeral=True)
print("again", flush=True)
sys.stdin.read()
store.close()
"""


@pytest.fixture(scope="module", params=["etcd", "zookeeper"])
def ensemble(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Not the one of the other tests: its processes are killed here."""
    reason = why_no_etcd() if request.param == "etcd" else why_no_zookeeper()
    if reason:
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp(request.param)
    with EtcdEnsemble(directory) if request.param == "etcd" else ZooKeeperEnsemble(directory) as started:
        yield started


@pytest.fixture(autouse=True)
def everything_runs(ensemble: Ensemble) -> Iterator[None]:
    ensemble.start()
    yield
    ensemble.start()


class Session:
    """A store with the states of its session, an ephemeral node and a watch."""

    def __init__(self, location: str, options: EngineOptions = OPTIONS) -> None:
        self.states: list[SessionState] = []
        self.woken = threading.Event()
        self.store: MetadataStore = store_at(location, options)
        self.store.on_session_state = self.states.append
        self.store.open()
        self.store.create("/mine", ephemeral=True)
        self.store.create("/n", b"0")
        self.store.watch("/n", self.woken.set)

    def write(self) -> float:
        """Until one write certainly happened; how long that took."""
        start = time.monotonic()
        while time.monotonic() - start < PATIENCE:
            try:
                node = self.store.get("/n")
                assert node is not None
                self.store.set("/n", b"%d" % (int(node.data) + 1), node.version)
                return time.monotonic() - start
            except SessionExpiredError:
                raise
            except MetadataStoreError:
                continue
        raise AssertionError("nothing can be written")

    def is_whole(self) -> bool:
        """The session is the same, and watches work."""
        mine = self.store.get("/mine")
        if mine is None or mine.owner != self.store.session_id:
            return False
        self.woken.clear()
        self.write()
        return self.woken.wait(PATIENCE)


@pytest.fixture
def chroot() -> str:
    return f"/{uuid.uuid4().hex}"


@pytest.fixture
def session(ensemble: Ensemble, chroot: str) -> Iterator[Session]:
    session = Session(ensemble.location(chroot))
    yield session
    session.store.close()


@pytest.fixture
def proxied(ensemble: Ensemble, chroot: str) -> Iterator[tuple[Session, TcpProxy]]:
    """One host, behind a proxy; a long session, so that it outlives what the proxy does."""
    with TcpProxy(ensemble.nodes[0].address) as proxy:
        location = f"{ensemble.scheme}://{proxy.address}{chroot}"
        session = Session(location, EngineOptions(session_timeout_ms=20_000, call_timeout_ms=4000))
        yield session, proxy
        proxy.delay_s, proxy.swallow_responses = 0.0, False
        proxy.cut()  # a stream with bytes missing in the middle would be something else
        session.store.close()


def test_any_one_node_may_be_killed(ensemble: Ensemble, session: Session) -> None:
    for node in ensemble.nodes:
        node.kill()
        session.write()
        assert session.is_whole()
        ensemble.start()
    assert SessionState.LOST not in session.states


def test_the_engines_leader_is_killed(ensemble: Ensemble, session: Session) -> None:
    ensemble.leader().kill()
    seconds = session.write()
    print(f"{ensemble.scheme}: {seconds:.1f} s from the kill of its leader to the next write")
    assert session.is_whole() and SessionState.LOST not in session.states


def test_a_frozen_node_is_left(ensemble: Ensemble, session: Session) -> None:
    """It takes connections and answers nothing."""
    for node in ensemble.nodes:
        node.freeze()
        session.write()
        node.thaw()
        ensemble.start()
    assert session.is_whole() and SessionState.LOST not in session.states


def test_all_down_and_back(ensemble: Ensemble, chroot: str) -> None:
    session = Session(ensemble.location(chroot), EngineOptions(session_timeout_ms=SESSION_MS, call_timeout_ms=2000))
    ensemble.kill()
    eventually(lambda: session.states[-1], lambda state: state is SessionState.SUSPENDED, PATIENCE)
    start = time.monotonic()
    with pytest.raises(StoreUnavailableError):
        session.store.get("/n")
    assert time.monotonic() - start < PATIENCE
    with pytest.raises(StoreUnavailableError):
        session.store.set("/n", b"7")
    time.sleep(SESSION_MS / 1000)  # an engine that is away ends no session
    assert SessionState.LOST not in session.states
    ensemble.start()
    eventually(lambda: session.states[-1], lambda state: state is SessionState.CONNECTED, PATIENCE)
    eventually(session.is_whole, timeout=PATIENCE)
    session.store.close()


def test_a_session_that_is_silent_for_too_long_is_over(ensemble: Ensemble, session: Session, chroot: str) -> None:
    location = ensemble.location(chroot)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, location], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        before = session.store.get("/held")
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: session.store.get("/held"), lambda node: node is None, PATIENCE)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == b"lost\n"
        assert process.stdout.readline() == b"again\n"
        after = session.store.get("/held")
        assert (
            before is not None and after is not None and after.owner != before.owner and after.created > before.created
        )
        process.stdin.close()
        process.wait()
    assert session.store.get("/held") is None and session.store.get("/late") is None


def test_a_killed_clients_node_disappears(ensemble: Ensemble, session: Session, chroot: str) -> None:
    location = ensemble.location(chroot)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, location], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        gone = threading.Event()
        session.store.watch("/held", gone.set)
        process.kill()
        start = time.monotonic()
        while session.store.get("/held") is not None:
            assert gone.wait(PATIENCE)
            gone.clear()
        seconds = time.monotonic() - start
    print(f"{ensemble.scheme}: {seconds:.1f} s from kill -9 to the end of a session of 4 s")


def data_at(store: MetadataStore, path: str) -> bytes | None:
    node = store.get(path)
    return None if node is None else node.data


WRITES: dict[str, tuple[Callable[[MetadataStore], object], Callable[[MetadataStore], bool]]] = {
    "create": (lambda store: store.create("/new", b"1"), lambda store: data_at(store, "/new") == b"1"),
    "set": (lambda store: store.set("/n", b"5", 0), lambda store: data_at(store, "/n") == b"5"),
    "delete": (lambda store: store.delete("/n"), lambda store: data_at(store, "/n") is None),
    "multi": (
        lambda store: store.multi([Create("/b"), Set("/n", b"6", 0), Delete("/mine")]),
        lambda store: store.children("/") == ["b", "n"] and data_at(store, "/n") == b"6",
    ),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_lost_response_is_an_unknown_outcome(proxied: tuple[Session, TcpProxy], what: str) -> None:
    (session, proxy), (write, has_happened) = proxied, WRITES[what]
    proxy.swallow_responses = True
    with pytest.raises(OutcomeUnknownError):
        write(session.store)
    proxy.swallow_responses = False
    proxy.cut()
    assert eventually(lambda: has_happened(session.store))


def test_a_lost_connection_to_a_single_host(proxied: tuple[Session, TcpProxy]) -> None:
    session, proxy = proxied
    proxy.refuse()
    # Unknown, if the client has not noticed yet that the connection is gone.
    with pytest.raises((StoreUnavailableError, OutcomeUnknownError)):
        session.store.create("/never")
    proxy.accept()
    session.write()
    assert session.store.get("/never") is None and session.is_whole()


def test_a_watch_misses_nothing_while_it_is_cut_off(
    ensemble: Ensemble, proxied: tuple[Session, TcpProxy], chroot: str
) -> None:
    """Not even if the engine has forgotten the revisions of that time."""
    session, proxy = proxied
    assert session.is_whole()
    proxy.refuse()
    with ExitStack() as stack:
        other = store_at(ensemble.location(chroot), OPTIONS)
        other.open()
        stack.callback(other.close)
        session.woken.clear()
        other.set("/n", b"100")
        if isinstance(ensemble, EtcdEnsemble):
            revision = other.scan("/").revision
            ensemble.leader().call("kv/compaction", {"revision": str(revision), "physical": True})
        assert not session.woken.is_set()
        proxy.accept()
        assert session.woken.wait(PATIENCE)
    assert session.is_whole()


def test_decisions_over_a_slow_engine_happen_once(ensemble: Ensemble, chroot: str) -> None:
    """Slower than a write waits for: its outcome is unknown, looked up, and found."""
    with TcpProxy(ensemble.nodes[0].address) as proxy:
        location = f"{ensemble.scheme}://{proxy.address}{chroot}"
        controller = LoneController(
            store_at(location, EngineOptions(session_timeout_ms=60_000, call_timeout_ms=60_000))
        )
        number = controller.machine.image.change_number
        proxy.delay_s = 0.8
        controller.run(create("slow", 3))
        proxy.delay_s = 0.0
        assert controller.machine.image.change_number == number + 1
        other = store_at(ensemble.location(chroot), OPTIONS)
        other.open()
        assert MetadataRepository(other).load(controller.cluster_id) == controller.machine.image
        other.close()
        controller.store.close()
