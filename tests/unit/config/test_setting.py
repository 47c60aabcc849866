import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.config.checks import at_least, either, some_of
from barnabas.config.setting import Kind, Setting, java_double
from barnabas.config.topic import TopicConfig


def setting(kind: Kind) -> Setting:
    return Setting(kind=kind, default=None, doc="", name="a.b")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " TRUE ", True),
        (Kind.BOOLEAN, "false", False),
        (Kind.INT, " 12 ", 12),
        (Kind.INT, "+7", 7),
        (Kind.INT, "-2147483648", -(1 << 31)),
        (Kind.LONG, "9223372036854775807", (1 << 63) - 1),
        (Kind.SHORT, "32767", 32767),
        (Kind.DOUBLE, " 1e3 ", 1000.0),
        (Kind.LIST, " a , b,c ", ("a", "b", "c")),
        (Kind.LIST, "  ", ()),
        (Kind.STRING, " kept as it is ", " kept as it is "),
        (Kind.CLASS, " org.x.Y ", "org.x.Y"),
    ],
)
def test_text_becomes_a_value(kind: Kind, text: str, value: object) -> None:
    assert setting(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.BOOLEAN, "yes"),
        (Kind.BOOLEAN, ""),
        (Kind.INT, "1_000"),
        (Kind.INT, "1.0"),
        (Kind.INT, "2147483648"),
        (Kind.INT, "٣"),
        (Kind.INT, "9" * 100_000),
        (Kind.SHORT, "32768"),
        (Kind.LONG, "9223372036854775808"),
        (Kind.DOUBLE, "nan"),
        (Kind.DOUBLE, "1_0"),
        (Kind.DOUBLE, "inf"),
        (Kind.CLASS, " "),
    ],
)
def test_wrong_text_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        setting(kind).parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (1e7, "1.0E7"), (1.5e-5, "1.5E-5"), (0.0, "0.0"), (-123456789.0, "-1.23456789E8")],
)
def test_doubles_are_written_as_java_does(value: float, text: str) -> None:
    assert java_double(value) == text


def test_checks_say_what_is_allowed() -> None:
    assert at_least(1).fault(0) == "must be at least 1"
    assert either(at_least(5), -1).fault(-1) is None
    assert either(at_least(5), -1).fault(4) == "must be at least 5, or -1"
    assert some_of("a", "b").fault(()) is not None
    assert some_of("a", "b").fault(("a", "a")) is not None


def test_table_is_slotted_and_frozen() -> None:
    config = TopicConfig(segment_bytes=1000)
    assert (config.segment_bytes, config.retention_ms) == (1000, 604_800_000)
    assert not hasattr(config, "__dict__")
    with pytest.raises(AttributeError):
        config.segment_bytes = 2000  # type: ignore[misc]
    with pytest.raises(TypeError, match="no field"):
        TopicConfig(segment_byte=1)  # type: ignore[call-arg]


def test_copies_compare_by_value() -> None:
    config = TopicConfig(segment_bytes=1000)
    assert config.replace(retention_ms=5).replace(retention_ms=604_800_000) == config
    assert config != TopicConfig()
    assert hash(config) == hash(TopicConfig(segment_bytes=1000))


def test_secrets_stay_out_of_repr() -> None:
    text = repr(BrokerConfig(ssl_key_password="hunter2", num_partitions=3))
    assert "hunter2" not in text
    assert "num.partitions=3" in text
