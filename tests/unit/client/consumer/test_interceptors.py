"""What interceptors may do to records: replace them, but not lose them by a mistake."""

import logging
from typing import Any

import pytest

from barnabas.client.consumer.hooks import Interceptors
from barnabas.records.codec import ConsumerRecord


class Returning:
    def __init__(self, make: Any) -> None:
        self.make = make

    def on_consume(self, records: list[ConsumerRecord]) -> Any:
        return self.make(records)


RECORDS: Any = [object(), object()]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda records: None, "NoneType"),
        (lambda records: (record for record in records), "generator"),
        (lambda records: 5, "int"),
    ],
)
def test_what_is_no_list_is_said_and_the_records_are_kept(
    make: Any, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    after: list[Any] = []
    interceptors = Interceptors([Returning(make), Returning(lambda records: after.append(records) or records)])
    with caplog.at_level(logging.ERROR):
        assert interceptors.on_consume(RECORDS) is RECORDS
    assert after == [RECORDS]
    assert f"on_consume returned {named}" in caplog.text


def test_a_list_takes_their_place_also_an_empty_one() -> None:
    assert Interceptors([Returning(lambda records: records[1:])]).on_consume(RECORDS) == RECORDS[1:]
    assert Interceptors([Returning(lambda records: [])]).on_consume(RECORDS) == []


def test_one_that_raises_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    assert Interceptors([Returning(lambda records: 1 / 0)]).on_consume(RECORDS) is RECORDS
    assert "failed on 2 records" in caplog.text
