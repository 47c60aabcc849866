"""RE2's syntax over topic names: against Python's engine where the two agree, by hand where they do not."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.machines.group.consumer.regex import RegexError, compile_regex

NAMES = st.text(alphabet="abAB01._-", max_size=8)
ATOMS = st.sampled_from(
    ["a", "b", "A", r"\.", ".", "[ab]", "[^a]", "[a-b0-1]", r"\d", r"\w", r"\W", "^", "$", r"\b", "-", "_", "(?i:a)"]
)


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantifiers = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??"])
    return st.one_of(
        st.builds("{}{}".format, parts, parts),
        st.builds("(?:{}|{})".format, parts, parts),
        st.builds("({}){}".format, parts, quantifiers),
    )


@given(regex=st.recursive(ATOMS, combined, max_leaves=8), name=NAMES)
@settings(max_examples=150)
def test_as_python_where_they_agree(regex: str, name: str) -> None:
    assert compile_regex(regex).matches(name) == (re.fullmatch(regex, name) is not None)


@pytest.mark.parametrize(
    ("regex", "matching", "other"),
    [
        ("", [""], ["a"]),
        ("orders", ["orders"], ["orders2", "xorders", "Orders"]),
        ("orders-.*", ["orders-", "orders-eu.1"], ["orders"]),
        ("^orders$", ["orders"], ["orders2"]),
        ("a|bc|", ["a", "bc", ""], ["abc", "b"]),
        ("(?i)oRders", ["ORDERS", "orders"], []),
        ("(?i)a(?-i)b", ["Ab", "ab"], ["aB"]),
        ("((?i)a)b", ["Ab", "ab"], ["aB"]),
        ("(?i:[a-c])x", ["Bx", "bx"], ["BX"]),
        ("(?s).+", ["a.b"], [""]),
        (r"[[:alpha:]]+[[:^digit:]]", ["abc", "ab-"], ["ab1", "1"]),
        (r"\pL+\p{Nd}", ["ab1"], ["a", "1"]),
        (r"\p{^Lu}+", ["ab.1"], ["aB"]),
        (r"\PL", ["1"], ["a"]),
        (r"\p{Latin}+\p{Greek}?", ["aB"], ["1"]),
        (r"\Qa.b*\E", [], ["aab", "a.b"]),
        (r"\Qa.b\Ec", ["a.bc"], ["axbc"]),
        (r"\x61\x{62}\056", ["ab."], ["ab"]),
        ("(?P<name>a)(?<other>b)", ["ab"], []),
        (r"[\d.-]+", ["1.2-3"], ["a"]),
        ("[]a]", ["a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        (r"[^\w]", [".", "-"], ["a", "_"]),
        ("a{,2}", [], ["a", "aa"]),
        ("a{2,3}", ["aa", "aaa"], ["a", "aaaa"]),
        ("(a{2}){2}", ["aaaa"], ["aa", "aaa"]),
        ("é|a", ["a"], ["e"]),
    ],
)
def test_syntax(regex: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_regex(regex)
    assert [name for name in matching if not compiled.matches(name)] == []
    assert [name for name in other if compiled.matches(name)] == []


WRONG = r"( ) a) (a [a [b-a] [a-\d] * a** a*+ a{2}{3} a{1001} a{3,2} (a{100}){11} \x{110000}"
NOT_OF_RE2 = r"\ \1 \k \Z [[:nope:]] \p{Nope} \xg0 \p \p{L \x{ (?=a) (?!a) (?<=a) (?<!a) (?#x) (?x) (?P<1 (?P=a) (?i (?"
TOO_LARGE = ["(" * 200 + ")" * 200, "a" * 20_000, "(" + "()" * 1000 + "){1000}", "(a{30}b{30}c{30}d{30}){900}"]


@pytest.mark.parametrize("regex", [*WRONG.split(), *NOT_OF_RE2.split(), *TOO_LARGE])
def test_errors(regex: str) -> None:
    with pytest.raises(RegexError):
        compile_regex(regex)


@pytest.mark.parametrize(
    "regex", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*a){20}b", "(a?){50}a{50}b", "(.*)(.*)(.*)(.*)x"]
)
def test_no_expression_takes_long(regex: str) -> None:
    """A backtracking engine would not come back from these."""
    assert not compile_regex(regex).matches("a" * 249)


def test_work_is_bounded() -> None:
    compiled = compile_regex("(.?){1000}")
    with pytest.raises(RegexError):
        for number in range(10_000):
            compiled.matches(f"{number:016b}" * 8)


@given(regex=st.text(alphabet=string.printable, max_size=20), name=NAMES)
@settings(max_examples=120)
def test_any_text_is_an_expression_or_an_error(regex: str, name: str) -> None:
    try:
        compile_regex(regex).matches(name)
    except RegexError:
        pass


@pytest.mark.parametrize(
    ("regex", "matching", "other"),
    [
        (r"a\sb", ["a b", "a\tb"], ["a-b"]),
        ("[[:punct:]]+", [":/#"], ["a"]),
        ("[^a]", [":", "\u00e9"], ["a"]),
        (r"\p{Cyrillic}+", ["\u0434\u0430"], ["da"]),
        (r"\p{Lu}", ["\u00c9"], ["\u00e9"]),
        ("(?i)\u00c9", ["\u00e9"], ["e"]),
        (".", [":"], ["\n"]),
    ],
)
def test_another_alphabet(regex: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_regex(regex, frozenset("a b-_d:/#\t\n\u00e9\u00c9\u0434\u0430e"))
    assert [name for name in matching if not compiled.matches(name)] == []
    assert [name for name in other if compiled.matches(name)] == []
