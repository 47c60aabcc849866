"""Words and options in any order, and what is said to a typo."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.cli.command import parser_of, single_parser
from barnabas.cli.command_parser import CommandParser
from barnabas.cli.commands import completion, config, consume, log, partition, produce, topic
from barnabas.cli.data.short_options import getopt_words


def parsed(module: Any, *words: str) -> dict[str, Any]:
    return vars(parser_of("noun", "", module.VERBS).parse(words))


@pytest.mark.parametrize(
    ("module", "words", "meant"),
    [
        (config, "get topic orders --json retention.ms", {"name": "orders", "keys": ["retention.ms"], "json": True}),
        (config, "get --json topic orders retention.ms x", {"kind": "topic", "keys": ["retention.ms", "x"]}),
        (config, "set topic orders --dry-run a=1", {"pairs": ["a=1"], "dry_run": True}),
        (partition, "verify --json t:0=1", {"plan": ["t:0=1"]}),
        (partition, "reassign -b h:1 t:0=1 t:1=1", {"plan": ["t:0=1", "t:1=1"], "bootstrap_server": "h:1"}),
        (partition, "cancel --timeout 3 t:0", {"partitions": ["t:0"], "timeout": 3.0}),
        (partition, "elect --unclean t:0 --json t:1", {"partitions": ["t:0", "t:1"], "unclean": True}),
        (topic, "create a -p 3 b", {"names": ["a", "b"], "partitions": 3}),
        (topic, "delete-records --before 3 a", {"name": "a", "before": 3}),
        (topic, "describe --json -- -odd", {"names": ["-odd"], "json": True}),
        (topic, "describe a -- -odd", {"names": ["a", "-odd"]}),
        (topic, "create x -c a=-1 --config=-x=y", {"names": ["x"], "config": ["a=-1", "-x=y"]}),
    ],
)
def test_options_among_the_words(module: Any, words: str, meant: dict[str, Any]) -> None:
    found = parsed(module, *words.split())
    assert meant.items() <= found.items()
    assert found["command"].name == words.split()[0]


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("orders -p 0 FILE", ["FILE"]),
        ("-p 0 orders FILE -H a=b OTHER", ["FILE", "OTHER"]),
        ("orders -K= -", ["-"]),
        ("orders -z lz4", []),
    ],
)
def test_files_after_options(words: str, files: list[str]) -> None:
    reader = single_parser(produce.COMMAND)
    options = reader.parse(getopt_words(reader, words.split()))
    assert (options.topic, options.files) == ("orders", files)


def test_topics_after_options() -> None:
    reader = single_parser(consume.COMMAND)
    assert reader.parse(getopt_words(reader, ["orders", "-o", "-5", "bills"])).topics == ["orders", "bills"]


@pytest.mark.parametrize(
    ("parser", "words", "usage", "told"),
    [
        (
            parser_of("topic", "", topic.VERBS),
            "create x --partitons 3",
            "usage: barnabas topic create ",
            "barnabas topic create: error: unrecognized arguments: --partitons 3 (did you mean --partitions?)",
        ),
        (
            parser_of("topic", "", topic.VERBS),
            "list --jsn=1",
            "usage: barnabas topic list ",
            "barnabas topic list: error: unrecognized arguments: --jsn=1 (did you mean --json?)",
        ),
        (parser_of("topic", "", topic.VERBS), "list --zzz", "usage: barnabas topic list ", "arguments: --zzz"),
        (
            parser_of("topic", "", topic.VERBS),
            "creat x",
            "usage: barnabas topic ",
            "barnabas topic: error: there is no verb 'creat' (did you mean create?); there are create, list, describe,"
            " alter, delete, add-partitions, offsets, delete-records",
        ),
        (parser_of("topic", "", topic.VERBS), "", "usage: barnabas topic ", "are required: VERB"),
        (single_parser(produce.COMMAND), "t --ackss 1", "usage: barnabas produce ", "(did you mean --acks?)"),
        (
            single_parser(consume.COMMAND),
            "t --partition-s 1",
            "usage: barnabas consume ",
            "(did you mean --partitions?)",
        ),
        (single_parser(completion.COMMAND), "bash --lines=x", "usage: barnabas completion ", "(did you mean --line?)"),
        (
            parser_of("log", "", log.VERBS),
            "dumb x",
            "usage: barnabas log ",
            "(did you mean dump?); there are dump, accept",
        ),
        (parser_of("log", "", log.VERBS), "dump x.log --jsno", "usage: barnabas log dump ", "(did you mean --json?)"),
    ],
)
def test_typos(parser: CommandParser, words: str, usage: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse(words.split())
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith(usage) and text.endswith(f"{told}\n")
