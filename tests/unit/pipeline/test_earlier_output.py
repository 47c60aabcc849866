"""A new checkpoint on topics of an earlier run, against a broker in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Admin, Producer
from barnabas.pipeline.earlier_output import earlier_output_warning
from barnabas.pipeline.routing import parse_routing
from barnabas.testing import Broker

ROUTING = parse_routing('[tables.order_info]\nkind = "fact"\n[tables.user_info]\nkind = "dimension"\n')
ODS = "ods_base_log"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as admin:
        for name in (ODS, "ods_base_db", "dwd_start_log", "dwd_page_log", "dwd_order_info", "dim_user_info"):
            admin.create_topic(name, 2)
        yield admin


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    with Producer(broker.bootstrap) as producer:
        yield producer


def warning(admin: Admin) -> str | None:
    return earlier_output_warning(admin, "./here", ROUTING)


def test_nothing_is_written_yet(admin: Admin, producer: Producer) -> None:
    assert warning(admin) is None
    producer.send(ODS, b"{}", partition=1).result()
    assert warning(admin) is None


def test_nothing_is_left_to_be_read_again(admin: Admin, producer: Producer) -> None:
    producer.send(ODS, b"{}", partition=0).result()
    producer.send("dwd_page_log", b"{}").result()
    assert warning(admin) is not None
    admin.delete_records({(ODS, 0): -1})
    assert warning(admin) is None


def test_the_topics_are_named_and_what_to_do(admin: Admin, producer: Producer) -> None:
    producer.send("ods_base_db", b"{}").result()
    for name in ("dim_user_info", "dwd_order_info", "dwd_page_log", "dwd_start_log"):
        producer.send(name, b"{}", partition=1).result()
    told = warning(admin)
    assert told is not None and "./here is new" in told
    assert "(dwd_start_log, dwd_page_log, dwd_order_info and 1 more)" in told
    assert "--starting-offsets latest" in told


def test_one_topic_of_another_routing(admin: Admin, producer: Producer) -> None:
    producer.send(ODS, b"{}").result()
    producer.send("dim_user_info", b"{}").result()
    assert earlier_output_warning(admin, "./here", parse_routing('[tables.shop]\nkind = "fact"\n')) is None
    told = warning(admin)
    assert told is not None and "(dim_user_info)" in told


def test_brokers_that_do_not_respond_are_no_reason_to_stop(
    admin: Admin, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer.send(ODS, b"{}").result()
    producer.send("dim_user_info", b"{}").result()
    monkeypatch.setattr("barnabas.pipeline.earlier_output._PATIENCE_S", 0.0)
    assert warning(admin) is None
