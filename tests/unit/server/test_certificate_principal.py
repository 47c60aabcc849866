"""Subjects as Java writes them, and the rules that shorten them."""

import pytest

from barnabas.server.certificate_principal import name_of, parse_rules, subject_of

ALICE = {
    "subject": (
        (("countryName", "DE"),),
        (("organizationName", "Fish, Chips"),),
        (("emailAddress", "a@b"),),
        (("commonName", "Alice"),),
    )
}


def test_a_subject_is_written_last_part_first_and_escaped() -> None:
    assert subject_of(ALICE) == r"CN=Alice,1.2.840.113549.1.9.1=#1603614062,O=Fish\, Chips,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", subject_of(ALICE)),
        ("", subject_of(ALICE)),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1@here/L", "alice@here"),
        ("RULE:^CN=Bob$/bob/, RULE:^CN=(.*?),.*$/$1/U, DEFAULT", "ALICE"),
        ("RULE:Alice/nobody/", None),
    ],
)
def test_the_first_rule_that_matches_the_whole_subject_decides(rules: str, name: str | None) -> None:
    assert name_of(ALICE, parse_rules(rules)) == name


@pytest.mark.parametrize("rules", ["RULE:x", "nonsense", "RULE:(/x/", "RULE:a/$1/"])
def test_other_rules_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"must be|has a"):
        parse_rules(rules)
