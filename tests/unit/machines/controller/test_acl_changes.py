"""Which rules may be created, what a filter deletes, and the limits."""

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.acl_changes import MAX_CHANGES, decide_create_acls, decide_delete_acls
from barnabas.machines.controller.acls import (
    Acl,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.machines.controller.commands import CreateAcls, DeleteAcls
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.controller.records import AclsSet

TOPIC = ResourcePattern(SecuredType.TOPIC, "orders", PatternType.LITERAL)
ENTRY = AclEntry("User:a", "*", Operation.READ, Permission.ALLOW)


def pattern(name: str, pattern_type: PatternType = PatternType.LITERAL) -> ResourcePattern:
    return ResourcePattern(SecuredType.TOPIC, name, pattern_type)


@pytest.mark.parametrize(
    ("acl", "words"),
    [
        (Acl(TOPIC._replace(type=SecuredType.CLUSTER), ENTRY), "only valid name"),
        (Acl(TOPIC._replace(name=""), ENTRY), "empty resource name"),
        (Acl(TOPIC._replace(type=SecuredType.ANY), ENTRY), "resourceType ANY"),
        (Acl(TOPIC._replace(pattern_type=PatternType.MATCH), ENTRY), "patternType MATCH"),
        (Acl(TOPIC, ENTRY._replace(operation=Operation.ANY)), "operation ANY"),
        (Acl(TOPIC, ENTRY._replace(permission=Permission.ANY)), "permissionType ANY"),
        (Acl(TOPIC, ENTRY._replace(principal="alice")), "no colon"),
        (Acl(TOPIC, ENTRY._replace(host="10.0.0.0/33")), "network"),
    ],
)
def test_what_is_refused_alone(acl: Acl, words: str) -> None:
    records, results = decide_create_acls(ClusterImage(), CreateAcls((acl, Acl(TOPIC, ENTRY))))
    assert records == (AclsSet(TOPIC, (ENTRY,)),)
    assert [each.error for each in results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert words in (results[0].message or "")


def test_a_rule_twice_is_no_change() -> None:
    image = ClusterImage(acls={TOPIC: (ENTRY,)})
    records, results = decide_create_acls(image, CreateAcls((Acl(TOPIC, ENTRY), Acl(TOPIC, ENTRY))))
    assert records == () and [each.error for each in results] == [ErrorCode.NONE] * 2


def test_limits() -> None:
    acls = tuple(Acl(TOPIC, ENTRY._replace(host=f"host-{number}")) for number in range(MAX_CHANGES))
    (record,), results = decide_create_acls(ClusterImage(), CreateAcls(acls))
    assert 2000 < len(record.entries) < MAX_CHANGES
    assert {each.error for each in results} == {ErrorCode.NONE, ErrorCode.POLICY_VIOLATION}
    with pytest.raises(KafkaError) as refused:
        decide_create_acls(ClusterImage(), CreateAcls((*acls, acls[0])))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (AclFilter(), ["orders", "*", "ord", "other"]),
        (AclFilter(name="orders"), ["orders"]),
        (AclFilter(SecuredType.TOPIC, "orders", PatternType.LITERAL), ["orders"]),
        (AclFilter(SecuredType.TOPIC, "nothing", PatternType.LITERAL), []),
        (AclFilter(SecuredType.GROUP), []),
        (AclFilter(name="orders", pattern_type=PatternType.MATCH), ["orders", "*", "ord"]),
        (AclFilter(pattern_type=PatternType.PREFIXED), ["ord"]),
        (AclFilter(principal="User:b"), []),
        (AclFilter(host="*", operation=Operation.READ, permission=Permission.DENY), []),
    ],
)
def test_what_a_filter_deletes(wanted: AclFilter, names: list[str]) -> None:
    patterns = [pattern("orders"), pattern("*"), pattern("ord", PatternType.PREFIXED), pattern("other")]
    image = ClusterImage(acls=dict.fromkeys(patterns, (ENTRY,)))
    records, (deleted,) = decide_delete_acls(image, DeleteAcls((wanted,)))
    assert [acl.pattern.name for acl in deleted.acls] == names
    assert [record.pattern.name for record in records] == names and not any(each.entries for each in records)


def test_two_filters_that_match_the_same() -> None:
    image = ClusterImage(acls={TOPIC: (ENTRY, ENTRY._replace(principal="User:b"))})
    filters = (AclFilter(principal="User:a"), AclFilter(principal="User:a"))
    records, results = decide_delete_acls(image, DeleteAcls(filters))
    assert records == (AclsSet(TOPIC, (ENTRY._replace(principal="User:b"),)),)
    assert [len(each.acls) for each in results] == [1, 1]
