"""The text of the completion scripts; `completion` says which words there are.

bash's script serves zsh too, by bashcompinit. The scripts ask `barnabas completion topics --line ...` for names, and
only where a name may stand.
"""

from collections.abc import Sequence
from typing import NamedTuple

TOPICS, GROUPS = "topics", "groups"
Key = tuple[str, ...]
Words = dict[Key, list[str]]
Choices = dict[Key, list[str]]
NAMES_OF = {"topic": TOPICS, "group": GROUPS}
"""The kind of names that follows such a choice."""


class Names(NamedTuple):
    of_words: dict[Key, str]
    """The kind of names that may follow these words."""
    of_options: dict[str, str]
    """The kind that follows an option."""


def bash_script(words: Words, names: Names | None = None, choices: Choices | None = None, *, zsh: bool) -> str:
    verbs = "".join(f"      {key[0]}) words={_quoted(words[key])} ;;\n" for key in words if len(key) == 1)
    options = "".join(f'      "{" ".join(key)}") words={_quoted(words[key])} ;;\n' for key in words if len(key) == 2)
    # A noun without verbs has options from its second word on.
    plain = "".join(
        f'      "{key[0]} "*) words={_quoted(words[key])} ;;\n'
        for key in words
        if len(key) == 1 and _is_plain(words, key)
    )
    # So has one that runs without a verb too.
    plain += "".join(
        f'      "{key[0]} -"*) words={_quoted(words[key])} ;;\n'
        for key in words
        if len(key) == 1 and not _is_plain(words, key) and any(word.startswith("-") for word in words[key])
    )
    start = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return f"""{start}_barnabas() {{
  local words="" kind="" typed="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={_quoted(words[()])}
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "${{COMP_WORDS[1]}}" in
{verbs}    esac
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{options}{plain}    esac
  fi
{_bash_choices(choices or {})}{_bash_names(names, words)}  COMPREPLY=($(compgen -W "$words" -- "$typed"))
}}
complete -o default -F _barnabas barnabas
"""


def _bash_choices(choices: Choices) -> str:
    """Offered until one of them stands in the line; then names, if it is a kind of names and was the last word."""
    if not choices:
        return ""
    by_words = ""
    for key, offered in choices.items():
        pattern = f'"{" ".join(key)}"' if len(key) == 2 else f'"{key[0]} "*'
        by_words += f"    {pattern}) choices={_quoted(offered)} first={len(key) + 1} ;;\n"
    followed = {
        kind: [f'"{" ".join(key)} {word}"' for key, offered in choices.items() if word in offered]
        for word, kind in NAMES_OF.items()
    }
    by_choice = "".join(f"      {'|'.join(found)}) kind={kind} ;;\n" for kind, found in followed.items() if found)
    return f"""  local choices="" chosen="" first=3 index
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{by_words}  esac
  for ((index = first; index < COMP_CWORD; index++)); do
    case " $choices " in *" ${{COMP_WORDS[index]}} "*) chosen="${{COMP_WORDS[index]}}"; break ;; esac
  done
  if [ -z "$chosen" ]; then
    words="$words $choices"
  elif [ "$chosen" = "${{COMP_WORDS[COMP_CWORD-1]}}" ]; then
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}} $chosen" in
{by_choice}    esac
  fi
"""


def _bash_names(names: Names | None, words: Words) -> str:
    if names is None:
        return ""
    patterns = {
        kind: [_bash_pattern(key, words) for key in names.of_words if names.of_words[key] == kind]
        for kind in (TOPICS, GROUPS)
    }
    by_words = "".join(f"      {'|'.join(found)}) kind={kind} ;;\n" for kind, found in patterns.items() if found)
    options = {kind: [text for text in names.of_options if names.of_options[text] == kind] for kind in patterns}
    by_option = "".join(f"    {'|'.join(found)}) kind={kind}; words= ;;\n" for kind, found in options.items() if found)
    return f"""  case "$typed" in
    -*) ;;
    *)
      case "${{COMP_WORDS[1]}} ${{COMP_CWORD}} ${{COMP_WORDS[2]}}" in
{by_words}      esac ;;
  esac
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{by_option}  esac
  if [ -n "$kind" ]; then
    words="$words $(barnabas completion "$kind" --line "$COMP_LINE" 2>/dev/null)"
  fi
"""


def _bash_pattern(key: Key, words: Words) -> str:
    """Of noun, number of the word that is typed, and verb: after a verb that is the third or a later one."""
    return f'"{key[0]} "*' if _is_plain(words, key) else f'"{key[0]} "[!12]*" {key[1]}"'


def fish_script(words: Words, names: Names | None = None, choices: Choices | None = None) -> str:
    lines = [f"complete -c barnabas -n __fish_use_subcommand -f -a {_quoted(words[()])}"]
    for key, following in words.items():
        if not key:
            continue
        condition = _fish_condition(key)
        if len(key) == 1 and not _is_plain(words, key):
            condition += f"; and not __fish_seen_subcommand_from {' '.join(following)}"
        lines.append(f"complete -c barnabas -n '{condition}' -f -a {_quoted(following)}")
    if names is not None:
        for key, kind in names.of_words.items():
            lines.append(f"complete -c barnabas -n '{_fish_condition(key)}' -f -a '{_fish_names(kind)}'")
        for text, kind in names.of_options.items():
            switch = f"-l {text[2:]}" if text.startswith("--") else f"-s {text[1:]}"
            lines.append(f"complete -c barnabas {switch} -x -a '{_fish_names(kind)}'")
    for key, offered in (choices or {}).items():
        condition = f"{_fish_condition(key)}; and not __fish_seen_subcommand_from {' '.join(offered)}"
        lines.append(f"complete -c barnabas -n '{condition}' -f -a {_quoted(offered)}")
        for word, kind in NAMES_OF.items():
            if word in offered:
                pattern = f'string match -q -r "^barnabas {" ".join(key)}( .*)? {word} +[^ ]*\\$" -- (commandline -cp)'
                lines.append(f"complete -c barnabas -n '{pattern}' -f -a '{_fish_names(kind)}'")
    return "\n".join(lines) + "\n"


def _fish_condition(key: Key) -> str:
    return f'string match -q -r "^barnabas {" ".join(key)}( |\\$)" -- (commandline -cp)'


def _fish_names(kind: str) -> str:
    return f"(barnabas completion {kind} --line (commandline -cp | string collect) 2>/dev/null)"


def _is_plain(words: Words, key: Key) -> bool:
    """A noun without verbs."""
    return len(key) == 1 and not any(len(other) == 2 and other[0] == key[0] for other in words)


def _quoted(words: Sequence[str]) -> str:
    return '"' + " ".join(words) + '"'
