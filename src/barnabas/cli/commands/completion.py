"""`barnabas completion SHELL`: prints what makes the shell complete nouns, verbs, options, topics and groups.

    source <(barnabas completion bash)          # zsh too: source <(barnabas completion zsh)
    barnabas completion fish | source

The words are those of the commands themselves, from `VERBS` and `COMMAND` of each module. Names come from the broker
while somebody types: the scripts call `barnabas completion topics` (or groups), which prints nothing if there is no
response soon.
"""

import argparse
import importlib

from barnabas.cli.command import Command, add_connection_arguments, command_main, parser_of, single_parser
from barnabas.cli.commands.completion_scripts import (
    GROUPS,
    TOPICS,
    VALUES,
    Choices,
    Key,
    Names,
    Words,
    bash_script,
    fish_script,
)
from barnabas.cli.commands.completion_values import has_values

SHELLS = ("bash", "zsh", "fish")
KINDS = (TOPICS, GROUPS, VALUES)
RESPONSE_WITHIN_MS = "2000"
Parsers = dict[Key, argparse.ArgumentParser]

__all__ = ["all_choices", "all_names", "all_words", "bash_script", "fish_script", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=[*SHELLS, *KINDS], help="a shell; or topics, groups: their names now; values")
    parser.add_argument("--line", default="", help="what was typed so far: names come from the broker that it is about")


def complete(options: argparse.Namespace) -> None:
    if options.shell in KINDS:
        print("".join(f"{name}\n" for name in names_now(options.shell, options.line)), end="")
        return
    known = all_words(), all_names(), all_choices()
    print(fish_script(*known) if options.shell == "fish" else bash_script(*known, zsh=options.shell == "zsh"), end="")


def all_words() -> Words:
    """What may follow: () is the nouns, (noun,) its verbs or options, (noun, verb) the options of that."""
    from barnabas.cli.main import COMMANDS

    words: Words = {(): sorted(COMMANDS), **{(noun,): [] for noun in COMMANDS}}
    for key, made in _parsers().items():
        words[key] = _options(made)
        if len(key) == 2:
            words[key[:1]].append(key[1])
    return words


def all_names() -> Names:
    """Where names of topics and groups belong: after which words, and after which options."""
    names = Names({}, {})
    for key, made in _parsers().items():
        for action in made._actions:
            kind = _kind(key, action)
            if kind is None:
                continue
            if action.option_strings:
                names.of_options.update((text, kind) for text in action.option_strings)
            else:
                names.of_words[key] = kind
    return names


def all_choices() -> Choices:
    """Words of which one is typed, in its place: `config get topic`."""
    return {
        key: [str(each) for each in action.choices]
        for key, made in _parsers().items()
        for action in made._actions
        if action.choices and not action.option_strings
    }


def names_now(kind: str, line: str) -> list[str]:
    """Sorted; nothing if the broker does not respond: an error would disturb the line being typed."""
    if kind == VALUES:
        return _values_now(line)
    from barnabas.cli.command import UsageError
    from barnabas.cli.connection import client_config
    from barnabas.cli.log_level import log_level
    from barnabas.client.admin import Admin
    from barnabas.client.options import AdminOptions
    from barnabas.errors import KafkaError

    soon = {"default.api.timeout.ms": RESPONSE_WITHIN_MS, "request.timeout.ms": RESPONSE_WITHIN_MS}
    try:
        config = client_config(_connection(line), AdminOptions) | soon
        with log_level(), Admin.from_config(config) as admin:
            return sorted(admin.list_topics() if kind == TOPICS else admin.list_groups())
    except (KafkaError, UsageError, ValueError, argparse.ArgumentError):
        return []


def _values_now(line: str) -> list[str]:
    import shlex

    from barnabas.cli.commands.completion_values import values_for

    try:
        words = shlex.split(line)[1:]
    except ValueError:  # a quote that is still open
        return []
    return values_for([*words, ""] if line.endswith(" ") else words, _parsers())


def _connection(line: str) -> argparse.Namespace:
    """Which broker the line is about. Raises ValueError or ArgumentError for one that is not typed yet."""
    import shlex

    made = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_connection_arguments(made)
    return made.parse_known_args(shlex.split(line))[0]


def _parsers() -> Parsers:
    from barnabas.cli.main import COMMANDS

    parsers: Parsers = {}
    for noun, (module_name, _) in COMMANDS.items():
        module = importlib.import_module(module_name)
        if hasattr(module, "COMMAND"):  # what the noun alone is for
            parsers[noun,] = single_parser(module.COMMAND, f"barnabas {noun}")
        if hasattr(module, "VERBS"):
            made = parser_of(noun, "", module.VERBS)
            parsers.update(((noun, verb), child) for verb, child in made.verbs().items())
    return parsers


def _options(parser: argparse.ArgumentParser) -> list[str]:
    long = [text for action in parser._actions for text in action.option_strings if text.startswith("--")]
    return sorted(long)


def _kind(key: Key, action: argparse.Action) -> str | None:
    if has_values(action):
        return VALUES
    if action.metavar == "GROUP":
        return GROUPS
    if action.metavar == "TOPIC" or action.dest == "topic":
        return TOPICS
    # What is created has a name that nobody has yet.
    of_topic = key[0] == "topic" and key[1:] != ("create",) and not action.option_strings
    return TOPICS if of_topic and action.metavar == "NAME" else None


COMMAND = Command(
    "completion",
    "print what makes a shell complete these words",
    add_arguments,
    complete,
    connects=False,
    description="Print what makes a shell complete these words. For bash: source <(barnabas completion bash)",
)
main = command_main(COMMAND)
