"""`barnabas completion SHELL`: prints what makes the shell complete nouns, verbs and options.

    source <(barnabas completion bash)          # zsh too: source <(barnabas completion zsh)
    barnabas completion fish | source

The words are those of the commands themselves: from `VERBS` of a module, or from the parser that its `parser()` makes.
"""

import argparse
import importlib
from collections.abc import Sequence
from types import ModuleType

from barnabas.cli.command import OK, parser_of

SHELLS = ("bash", "zsh", "fish")
Words = dict[tuple[str, ...], list[str]]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="barnabas completion",
        description="Print what makes a shell complete these words. For bash: source <(barnabas completion bash)",
    )
    made.add_argument("shell", choices=SHELLS)
    return made


def main(arguments: Sequence[str]) -> int:
    shell = parser().parse_args(arguments).shell
    words = all_words()
    print(fish_script(words) if shell == "fish" else bash_script(words, zsh=shell == "zsh"), end="")
    return OK


def all_words() -> Words:
    """What may follow: () is the nouns, (noun,) its verbs or options, (noun, verb) the options of that."""
    from barnabas.cli.main import COMMANDS

    words: Words = {(): sorted(COMMANDS)}
    for noun, (module_name, _) in COMMANDS.items():
        module = importlib.import_module(module_name)
        verbs = getattr(module, "VERBS", None)
        if verbs is None:
            words[noun,] = _options(_parser_in(module))
            continue
        words[noun,] = [verb.name for verb in verbs]
        made = parser_of(noun, "", verbs)
        (subparsers,) = [action for action in made._actions if isinstance(action, argparse._SubParsersAction)]
        for verb, child in subparsers.choices.items():
            words[noun, verb] = _options(child)
    return words


def _parser_in(module: ModuleType) -> argparse.ArgumentParser | None:
    make = getattr(module, "parser", None) or getattr(module, "_parser", None)
    made = None if make is None else make()
    return made if isinstance(made, argparse.ArgumentParser) else None


def _options(parser: argparse.ArgumentParser | None) -> list[str]:
    if parser is None:
        return []
    long = [text for action in parser._actions for text in action.option_strings if text.startswith("--")]
    choices = [str(each) for action in parser._actions if not action.option_strings for each in action.choices or ()]
    return choices + sorted(long)


def bash_script(words: Words, *, zsh: bool) -> str:
    verbs = "".join(f"      {key[0]}) words={_quoted(words[key])} ;;\n" for key in words if len(key) == 1)
    options = "".join(f'      "{" ".join(key)}") words={_quoted(words[key])} ;;\n' for key in words if len(key) == 2)
    # A noun without verbs has options from its second word on.
    plain = "".join(
        f'      "{key[0]} "*) words={_quoted(words[key])} ;;\n'
        for key in words
        if len(key) == 1 and not any(len(other) == 2 and other[0] == key[0] for other in words)
    )
    start = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return f"""{start}_barnabas() {{
  local words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={_quoted(words[()])}
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "${{COMP_WORDS[1]}}" in
{verbs}    esac
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{options}{plain}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _barnabas barnabas
"""


def fish_script(words: Words) -> str:
    lines = [f"complete -c barnabas -n __fish_use_subcommand -f -a {_quoted(words[()])}"]
    for key, following in words.items():
        if not key:
            continue
        seen = " ".join(key)
        condition = f'string match -q -r "^barnabas {seen}( |\\$)" -- (commandline -cp)'
        following_words = " ".join(following)
        if len(key) == 1 and any(len(other) == 2 and other[0] == key[0] for other in words):
            condition += f"; and not __fish_seen_subcommand_from {following_words}"
        lines.append(f"complete -c barnabas -n '{condition}' -f -a {_quoted(following)}")
    return "\n".join(lines) + "\n"


def _quoted(words: Sequence[str]) -> str:
    return '"' + " ".join(words) + '"'
