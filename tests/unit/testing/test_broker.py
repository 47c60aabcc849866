"""The broker for tests: faults on demand, several in one process, and a data directory that outlives it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from raw_client import ConnectionEnded, RawClient, base_offsets, batch, fetch_request

from barnabas import Producer, TopicExistsError
from barnabas.config.faults import ConfigFaults
from barnabas.errors import ErrorCode
from barnabas.protocol.messages import init_producer_id as init
from barnabas.protocol.messages import list_offsets as listing
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.testing import Broker

NEW_PRODUCER = init.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)


def test_a_fault_responds_with_an_error_as_often_as_asked(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client:
        client.create_topic("t")
        barnabas_broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", count=2)
        codes = [client.produce("t", batch()).error_code for _ in range(3)]
        assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]
        assert client.fetch("t", 0).high_watermark == 1  # those that were refused were not carried out


def test_a_fault_for_all_requests_lasts_until_it_is_cleared(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client:
        client.create_topic("t")
        barnabas_broker.fault("FETCH", error=ErrorCode.KAFKA_STORAGE_ERROR, count=None)
        assert {client.fetch("t", 0).error_code for _ in range(5)} == {ErrorCode.KAFKA_STORAGE_ERROR}
        barnabas_broker.clear_faults()
        assert client.fetch("t", 0).error_code == ErrorCode.NONE


def test_faults_of_one_api_come_in_the_order_they_were_put(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client:
        client.create_topic("t")
        barnabas_broker.fault("Produce", error="REQUEST_TIMED_OUT")
        barnabas_broker.fault("Produce", error="KAFKA_STORAGE_ERROR")
        codes = [client.produce("t", batch()).error_code for _ in range(3)]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_a_response_that_is_dropped_was_carried_out(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client, RawClient(barnabas_broker.bootstrap) as other:
        client.create_topic("t")
        barnabas_broker.fault("Produce", drop_answer=True)
        with pytest.raises(ConnectionEnded):
            client.produce("t", batch())
        assert other.fetch("t", 0).high_watermark == 1


def test_a_closed_connection_did_nothing(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client, RawClient(barnabas_broker.bootstrap) as other:
        client.create_topic("t")
        barnabas_broker.fault("Produce", close=True)
        with pytest.raises(ConnectionEnded):
            client.produce("t", batch())
        assert other.fetch("t", 0).high_watermark == 0


@pytest.mark.parametrize("api", ["ListOffsets", "InitProducerId"])
def test_a_delay_holds_the_response_back(barnabas_broker: Broker, api: str) -> None:
    """ListOffsets gets a response at once, InitProducerId from a coroutine."""
    with RawClient(barnabas_broker.bootstrap) as client:
        request = NEW_PRODUCER if api == "InitProducerId" else listing.ListOffsetsRequest(replica_id=-1, topics=[])
        client.ask(request, 3)
        barnabas_broker.fault(api, delay_ms=150)
        began = time.monotonic()
        client.ask(request, 3)
        assert time.monotonic() - began >= 0.15


def test_a_delayed_response_keeps_its_place(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client:
        client.create_topic("t")
        barnabas_broker.fault("Fetch", delay_ms=50, error="KAFKA_STORAGE_ERROR")
        first, second = (client.post(fetch_request("t", 0), 12) for _ in range(2))
        responses = []
        for _ in range(2):
            code = client.answer(FetchRequest, 12).responses[0].partitions[0].error_code
            responses.append((client.last_correlation_id, code))
        assert responses == [(first, ErrorCode.KAFKA_STORAGE_ERROR), (second, ErrorCode.NONE)]


def test_a_delay_of_what_has_no_response(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client:
        client.create_topic("t")
        barnabas_broker.fault("Produce", delay_ms=1)
        client.produce("t", batch(), acks=0)
        assert client.fetch("t", 0).high_watermark == 1


def test_faults_that_make_no_sense_are_refused(barnabas_broker: Broker) -> None:
    with pytest.raises(ValueError, match="one of error"):
        barnabas_broker.fault("Produce")
    with pytest.raises(ValueError, match="no API called 'Prodduce'"):
        barnabas_broker.fault("Prodduce", close=True)
    with pytest.raises(ValueError, match="NO_SUCH_CODE"):
        barnabas_broker.fault("Produce", error="NO_SUCH_CODE")


def test_two_brokers_in_one_process_know_nothing_of_each_other() -> None:
    with Broker() as one, Broker() as two, RawClient(one.bootstrap) as here, RawClient(two.bootstrap) as there:
        assert one.port != two.port
        here.create_topic("t")
        here.produce("t", batch())
        assert there.metadata().topics == []
        assert here.metadata().cluster_id != there.metadata().cluster_id
        one.fault("Metadata", close=True)
        assert there.metadata().brokers
        first, second = (client.ask(NEW_PRODUCER, 4).producer_id for client in (here, there))
        assert first == second == 0


def test_topics_and_records_outlive_a_restart(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path)
    with broker, RawClient(broker.bootstrap) as client:
        client.create_topic("t")
        client.produce("t", batch(b"kept"))
    assert (tmp_path / "t-0").is_dir()
    with broker, RawClient(broker.bootstrap) as client:
        assert base_offsets(client.fetch("t", 0).records) == [0]
        assert client.produce("t", batch()).base_offset == 1


def test_a_new_group_does_not_wait_for_members(barnabas_broker: Broker) -> None:
    config = barnabas_broker._running().config
    assert config.group_initial_rebalance_delay_ms == 0
    with Broker({"group.initial.rebalance.delay.ms": 77}) as patient:
        assert patient._running().config.group_initial_rebalance_delay_ms == 77


def test_settings_are_kafkas_and_checked() -> None:
    with (
        Broker({"num.partitions": 3, "auto.create.topics.enable": False}) as broker,
        RawClient(broker.bootstrap) as client,
    ):
        client.create_topic("t", partitions=-1)
        assert len(client.metadata().topics[0].partitions) == 3
    with pytest.raises(ConfigFaults, match=r"num\.partitons.*did you mean num\.partitions"):
        Broker({"num.partitons": 3}).start()


def test_using_it_before_it_runs_or_starting_it_twice_is_an_error() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="does not run"):
        broker.bootstrap  # noqa: B018
    with broker, pytest.raises(RuntimeError, match="runs already"):
        broker.start()
    broker.stop()  # does nothing the second time


def test_the_port_stays_over_stop_and_start(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path)
    with broker:
        broker.create_topic("t", partitions=2, config={"retention.ms": 1000})
        first = broker.bootstrap
        with Producer(first) as producer:
            producer.send("t", b"1", partition=1).result()
            producer.send("t", b"0", partition=0).result()
            broker.stop()
            broker.start()
            assert broker.bootstrap == first
            assert producer.send("t", b"again", partition=1).result(20).offset == 1
        assert [(each.partition, each.value) for each in broker.records("t")] == [(0, b"0"), (1, b"1"), (1, b"again")]
        with pytest.raises(TopicExistsError):
            broker.create_topic("t")


def test_records_of_an_aborted_transaction(barnabas_broker: Broker) -> None:
    barnabas_broker.create_topic("t")
    with Producer(barnabas_broker.bootstrap, transactional_id="x") as producer:
        producer.begin_transaction()
        producer.send("t", b"aborted").result()
        producer.abort_transaction()
        with producer.transaction():
            producer.send("t", b"committed")
    assert [each.value for each in barnabas_broker.records("t")] == [b"aborted", b"committed"]
    assert [each.value for each in barnabas_broker.records("t", committed=True)] == [b"committed"]


def test_names_that_do_not_exist_come_with_near_ones(barnabas_broker: Broker) -> None:
    with pytest.raises(ValueError, match="NOT_LEADER_OR_FOLLOWER"):
        barnabas_broker.fault("Produce", error="NOT_LEADER")
    with pytest.raises(ValueError, match=r"no error code called 'NOPE', did you mean NONE"):
        barnabas_broker.fault("Produce", error="NOPE")
    with pytest.raises(ValueError, match="did you mean Produce"):
        barnabas_broker.fault("Prodce", error="NONE")


@pytest.mark.barnabas_settings({"num.partitions": 3})
class TestSettingsByMarker:
    def test_of_the_class(self, barnabas_broker: Broker) -> None:
        assert partition_count(barnabas_broker) == 3

    @pytest.mark.barnabas_settings({"num.partitions": 5})
    def test_the_closest_wins(self, barnabas_broker: Broker) -> None:
        assert partition_count(barnabas_broker) == 5


def partition_count(broker: Broker) -> int:
    with Producer(broker.bootstrap) as producer:
        return len(producer.partitions_for("made-by-asking"))


def test_the_session_fixture(barnabas_session_broker: Broker) -> None:
    with Producer(barnabas_session_broker.bootstrap) as producer:
        producer.send("test-the-session-fixture", b"v").result()
    assert [each.value for each in barnabas_session_broker.records("test-the-session-fixture")] == [b"v"]


def test_the_clients_are_not_imported_for_a_broker() -> None:
    """They would double the time until it is there."""
    program = (
        "import sys; from barnabas.testing import Broker\n"
        "with Broker(): print(sorted(name for name in sys.modules if name.startswith('barnabas.client')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_session_fixture_is_one_broker_for_all_tests(request: pytest.FixtureRequest) -> None:
    (definition,) = request._fixturemanager.getfixturedefs("barnabas_session_broker", request.node) or ()
    assert definition.scope == "session"
