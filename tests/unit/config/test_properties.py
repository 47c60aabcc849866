import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.properties import parse_properties, write_properties


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  1  \n", {"a": "1  "}),
        ("a : = 1", {"a": "= 1"}),
        ("a\t\f1", {"a": "1"}),
        ("# no\n! no\n  # no\n\n \t\na=#yes", {"a": "#yes"}),
        ("a=1\\\n   2\\\n\t3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# part of a", {"a": "1# part of a"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\u0041", {"a": "\t\n\r\fqA"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a", {"a": ""}),
        ("=v", {"": "v"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\\", {"a": ""}),
        ("\\", {"": ""}),
        ("\\\n", {"": ""}),
        ("\\\n# a comment\na=1", {"a": "1"}),
        ("\\\n\n", {}),
        ("log.dirs=C:\\\\data", {"log.dirs": "C:\\data"}),
    ],
)
def test_rules_of_java(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "\\u 123=1"])
def test_malformed_escape(text: str) -> None:
    with pytest.raises(ValueError, match="malformed"):
        parse_properties(text)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_written_is_read_back(values: dict[str, str]) -> None:
    text = write_properties(values, ("written by a test",))
    assert text.isascii()
    assert parse_properties(text) == values


@given(st.text(alphabet="ab=: \\\n#!\tu01"))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        parse_properties(text)
    except ValueError as fault:
        assert "malformed" in str(fault)
