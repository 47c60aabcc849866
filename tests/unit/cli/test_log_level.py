"""A command silences the clients' log while it runs, and only then: it may be a part of a longer program."""

import logging

import pytest

from barnabas.cli.kafka.flags import Flag, Options, Tool
from barnabas.cli.log_level import log_level

LOGGER = logging.getLogger("barnabas")


@pytest.mark.parametrize(("wanted", "level"), [(None, logging.CRITICAL), (logging.INFO, logging.INFO)])
def test_for_as_long_as_it_lasts(wanted: int | None, level: int) -> None:
    before = LOGGER.level
    with pytest.raises(KeyError), log_level(wanted):
        assert LOGGER.level == level
        raise KeyError
    assert LOGGER.level == before


def test_kafkas_commands_leave_it_as_it_was() -> None:
    before, seen = LOGGER.level, []

    def work(options: Options) -> int:
        seen.append(LOGGER.level)
        return 3

    tool = Tool("kafka-nothing.sh", "This tool does nothing.", [Flag("go", "Go.")])
    assert tool.run(["--go"], lambda options: None, work) == 3
    assert seen == [logging.CRITICAL] and LOGGER.level == before
