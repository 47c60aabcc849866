"""Topic filters, and the rules from MQTT topics to Kafka's."""

import pytest

from barnabas.mqtt.mapping import Mapping, parse_rules, topic_of_record
from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.mqtt.topics import TopicFilter, check_topic_name, fault_of_filter, split_shared


@pytest.mark.parametrize(
    ("text", "name", "matches"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/B", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+", "a/b/c", False),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("+/+", "/a", True),
        ("/+", "/a", True),
        ("+", "/a", False),
        ("#", "$SYS/x", False),
        ("+/x", "$SYS/x", False),
        ("$SYS/#", "$SYS/x", True),
        ("a//b", "a//b", True),
        ("a/+/b", "a//b", True),
    ],
)
def test_filters_match_as_mqtt_says(text: str, name: str, matches: bool) -> None:
    assert TopicFilter(text).matches(name) is matches


@pytest.mark.parametrize("text", ["", "a/#/b", "a#", "a/b+", "+a/b", "/".join("a" * 129)])
def test_bad_filters_are_refused(text: str) -> None:
    assert fault_of_filter(text) is not None
    assert fault_of_filter("a/+/#") is None


@pytest.mark.parametrize("name", ["", "a/+", "#", "/".join("a" * 129)])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(MqttError) as refused:
        check_topic_name(name)
    assert refused.value.code is ReasonCode.TOPIC_NAME_INVALID


def test_shared_filters_are_split() -> None:
    assert split_shared("a/b") == (None, "a/b")
    assert split_shared("$share/g/a/#") == ("g", "a/#")
    assert split_shared("$share/g+/a")[0] == ""
    assert split_shared("$share/g")[0] == ""


def test_levels_are_joined_by_dots() -> None:
    mapping = Mapping()
    assert mapping.topic_for("sensors/7/temp") == "sensors.7.temp"
    assert mapping.topic_for("/a b/ü") == ".a_b._"


@pytest.mark.parametrize("name", ["/", "//", "a" * 250, "__consumer_offsets", "ü_x"])
def test_names_that_cannot_be_topics_are_refused(name: str) -> None:
    with pytest.raises(MqttError) as refused:
        Mapping().topic_for(name)
    assert refused.value.code is ReasonCode.TOPIC_NAME_INVALID


def test_the_first_rule_that_matches_decides() -> None:
    mapping = Mapping(parse_rules("sensors/+/temp -> sensors.temp; sensors/+/# -> site-{1}.{2}; x -> y;"))
    assert mapping.topic_for("sensors/7/temp") == "sensors.temp"
    assert mapping.topic_for("sensors/7/a/b") == "site-7.a.b"
    assert mapping.topic_for("x") == "y"
    assert mapping.topic_for("x/y") == "x.y"


@pytest.mark.parametrize("text", ["a", "a ->", "a/#/b -> c", "a/+ -> c-{2}", "a -> c-{1}", "a -> b c"])
def test_bad_rules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|must|no wildcard|may have"):
        parse_rules(text)


@pytest.mark.parametrize("text", ["a/b", "a/+", "+/b", "a/#", "#", "a/b/#", "+/+"])
def test_a_filter_finds_the_topics_of_what_it_matches(text: str) -> None:
    mapping = Mapping(parse_rules("a/b -> elsewhere"))
    assert mapping.may_hold("elsewhere", text)
    default = Mapping()
    assert default.may_hold("a.b", text)
    assert not default.may_hold("__consumer_offsets", text)
    assert not default.may_hold("b.c", "a/+")


def test_the_topic_of_a_record() -> None:
    mapping = Mapping()
    assert topic_of_record("a.b", None, b"a.b", mapping) == "a.b"
    assert topic_of_record("a.b", b"a/b", None, mapping) == "a/b"
    assert topic_of_record("a.b", b"order-7", None, mapping) == "a/b"
    assert topic_of_record("a.b", b"\xff", None, mapping) == "a/b"
    for bad in (b"", b"a/+", b"a\0b", b"x" * 70_000, b"\xff"):
        assert topic_of_record("a.b", None, bad, mapping) == "a/b"


def test_whoever_writes_to_one_topic_speaks_for_no_other() -> None:
    mapping = Mapping(parse_rules("doors/# -> doors"))
    assert topic_of_record("a.b", None, b"doors/1/open", mapping) == "a/b"
    assert topic_of_record("doors", None, b"doors/1/open", mapping) == "doors/1/open"
