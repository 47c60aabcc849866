"""Decisions of the authorizer: StandardAuthorizer's meaning, case by case; caches; the audit log."""

import logging

import pytest

from barnabas.clock import ManualClock
from barnabas.machines.controller.acls import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.server.audit_log import INTERVAL_MS, MAX_LINES
from barnabas.server.authorizer import Authorizer

Rule = tuple[str, str, Operation, Permission]
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


def image_of(*rules: tuple[str, AclEntry]) -> ClusterImage:
    """A name that ends in `~` is a prefix."""
    acls: dict[ResourcePattern, tuple[AclEntry, ...]] = {}
    for name, entry in rules:
        kind = PatternType.PREFIXED if name.endswith("~") else PatternType.LITERAL
        pattern = ResourcePattern(SecuredType.TOPIC, name.removesuffix("~"), kind)
        acls[pattern] = (*acls.get(pattern, ()), entry)
    return ClusterImage(acls=acls)


def rule(operation: Operation, permission: Permission = ALLOW, principal: str = "User:a", host: str = "*") -> AclEntry:
    return AclEntry(principal, host, operation, permission)


def authorizer_of(*rules: tuple[str, AclEntry], allow_if_no_acl: bool = False) -> Authorizer:
    made = Authorizer(ManualClock(), super_users=["User:root"], allow_if_no_acl=allow_if_no_acl)
    made.on_image(image_of(*rules))
    return made


def may(
    asked: Authorizer, operation: Operation, name: str = "orders", principal: str = "User:a", host: str = "10.0.0.9"
) -> bool:
    return asked.authorize(principal, host, operation, SecuredType.TOPIC, name, "Fetch")


@pytest.mark.parametrize("name", ["orders", "*", "ord~", "o~"])
def test_patterns(name: str) -> None:
    asked = authorizer_of((name, rule(READ)))
    assert may(asked, READ) and not may(asked, WRITE)
    assert not may(asked, READ, principal="User:b") and not may(asked, READ, principal="Group:a")
    assert may(asked, READ, name="shipped") is (name == "*")
    assert not asked.authorize("User:a", "h", READ, SecuredType.GROUP, "orders", "Fetch")


def test_a_literal_prefix_of_the_name_does_not_match() -> None:
    asked = authorizer_of(("order", rule(READ)), ("orders2~", rule(READ)))
    assert not may(asked, READ)


@pytest.mark.parametrize("denied", ["orders", "*", "ord~"])
@pytest.mark.parametrize("allowed", ["orders", "*", "ord~"])
def test_any_deny_wins(denied: str, allowed: str) -> None:
    asked = authorizer_of((allowed, rule(Operation.ALL)), (denied, rule(READ, DENY, "User:*")))
    assert not may(asked, READ) and may(asked, WRITE)
    assert may(asked, DESCRIBE), "a DENY implies nothing"
    assert may(asked, READ, principal="User:root")


def test_what_an_allow_implies() -> None:
    implied = {operation for operation in Operation if may(authorizer_of(("orders", rule(operation))), DESCRIBE)}
    assert implied == {Operation.ALL, READ, WRITE, DESCRIBE, Operation.DELETE, Operation.ALTER}
    asked = Operation.DESCRIBE_CONFIGS
    implied = {operation for operation in Operation if may(authorizer_of(("orders", rule(operation))), asked)}
    assert implied == {Operation.ALL, asked, Operation.ALTER_CONFIGS}


@pytest.mark.parametrize(
    ("rule_host", "client", "matches"),
    [
        ("*", "10.0.0.9", True),
        ("10.0.0.9", "10.0.0.9", True),
        ("10.0.0.9", "::ffff:10.0.0.9", True),
        ("10.0.0.8", "10.0.0.9", False),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.0.0.0/8", "::1", False),
        ("2001:db8::/32", "2001:db8::7", True),
        ("0:0:0:0:0:0:0:1", "::1", True),
        ("nonsense", "10.0.0.9", False),
    ],
)
def test_hosts(rule_host: str, client: str, matches: bool) -> None:
    asked = authorizer_of(("orders", rule(READ, host=rule_host)))
    assert may(asked, READ, host=client) is matches
    asked = authorizer_of(("orders", rule(READ)), ("orders", rule(READ, DENY, host=rule_host)))
    assert may(asked, READ, host=client) is not matches


def test_without_rules() -> None:
    rules = ("orders", rule(READ, principal="User:b"))
    assert not may(authorizer_of(rules), READ, "free")
    assert may(authorizer_of(rules, allow_if_no_acl=True), READ, "free")
    assert not may(authorizer_of(rules, allow_if_no_acl=True), READ), "it has rules, for somebody else"


def test_any_topic() -> None:
    def any_topic(*rules: tuple[str, AclEntry]) -> bool:
        return authorizer_of(*rules).authorize_any("User:a", "10.0.0.9", WRITE, SecuredType.TOPIC)

    assert not any_topic() and not any_topic(("orders", rule(READ)))
    assert any_topic(("orders", rule(WRITE))) and any_topic(("ord~", rule(Operation.ALL, principal="User:*")))
    assert not any_topic(("orders", rule(WRITE)), ("orders", rule(WRITE, DENY)))
    assert not any_topic(("orders", rule(WRITE)), ("o~", rule(WRITE, DENY)))
    assert not any_topic(("orders", rule(WRITE)), ("*", rule(WRITE, DENY)))
    assert any_topic(("orders", rule(WRITE)), ("orders", rule(WRITE, DENY)), ("other", rule(WRITE)))
    assert any_topic(("ord~", rule(WRITE)), ("orders", rule(WRITE, DENY)))
    assert authorizer_of().authorize_any("User:root", "h", WRITE, SecuredType.TOPIC)


def test_a_change_is_seen_at_once() -> None:
    asked, before = authorizer_of(("orders", rule(READ))), image_of(("orders", rule(READ)))
    assert may(asked, READ)
    version, after = asked.version, image_of(("orders", rule(READ)), ("ord~", rule(READ, DENY)))
    asked.on_delta(Delta.between(before, after))
    assert not may(asked, READ) and asked.version > version
    asked.on_delta(Delta.between(after, ClusterImage()))
    assert not may(asked, READ)
    asked.on_delta(Delta.between(ClusterImage(), before))
    assert may(asked, READ)
    version = asked.version
    asked.on_delta(Delta.between(before, before))
    assert asked.version == version


def test_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    asked = Authorizer(clock, super_users=["User:root"])
    asked.on_image(image_of(("orders", rule(READ, DENY))))
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        for _ in range(5):
            assert not may(asked, READ)
        assert may(asked, READ, principal="User:root")
        assert not asked.authorize("User:a", "h", WRITE, SecuredType.TOPIC, "x\ny", "Produce", log_denied=False)
        assert [record.getMessage() for record in caplog.records] == [
            "Principal = User:a is Denied operation = READ from host = 10.0.0.9 on resource = Topic:LITERAL:orders for"
            " request = Fetch based on rule MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=orders,"
            " patternType=LITERAL, principal=User:a, host=*, operation=READ, permissionType=DENY))"
        ]
        caplog.clear()
        clock.advance(INTERVAL_MS)
        assert not may(asked, WRITE, "x\ny")
        first, second = (record.getMessage() for record in caplog.records)
        assert first.endswith("for request = Fetch, 4 times more")
        assert r"Topic:LITERAL:x\ny" in second and second.endswith("DefaultDeny")
        caplog.clear()
        for number in range(MAX_LINES + 10):
            may(asked, WRITE, f"name-{number}")
        assert len(caplog.records) == MAX_LINES - 1
        caplog.clear()
        clock.advance(INTERVAL_MS)
        may(asked, WRITE, "one more")
        assert caplog.records[0].getMessage() == "11 further decisions were not written"
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        caplog.clear()
        assert may(asked, READ, principal="User:root")
        assert [record.getMessage()[-9:] for record in caplog.records] == ["SuperUser"]
