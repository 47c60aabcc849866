"""One-letter options with values as getopt reads them, for people who come from kcat: `-K=`, `-o -5`, `-f '-%s'`.

argparse would take a value that begins with a dash for an option, and drop an equal sign that is the value.
"""

import argparse
from collections.abc import Sequence


def getopt_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """The same words with `-K SEP` and `-KSEP` written as `--key-separator=SEP`."""
    long_names = _long_names(parser)
    written: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return [*written, word, *left]
        name = None if word.startswith("--") else long_names.get(word[:2])
        if name is not None and (len(word) > 2 or left):
            word = f"{name}={word[2:] or left.pop(0)}"
        written.append(word)
    return written


def _long_names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Of options that take a value: -K is --key-separator."""
    names: dict[str, str] = {}
    for action in parser._actions:
        long = [text for text in action.option_strings if text.startswith("--")]
        if long and action.nargs != 0:
            names.update((text, long[0]) for text in action.option_strings if len(text) == 2)
    return names
