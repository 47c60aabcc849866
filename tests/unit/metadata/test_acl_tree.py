"""Access rules in the store: Kafka's nodes, any name, and what a reload finds."""

import pytest
from lone_controller import LoneController

from barnabas.machines.controller import commands
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
from barnabas.metadata.stores.memory import MemoryStore

READ = AclEntry("User:a", "*", Operation.READ, Permission.ALLOW)
CONFIGS = AclEntry("User:b", "10.0.0.0/8", Operation.DESCRIBE_CONFIGS, Permission.DENY)


def test_the_nodes_are_kafkas() -> None:
    controller = LoneController(MemoryStore())
    topic = ResourcePattern(SecuredType.TOPIC, "orders", PatternType.LITERAL)
    prefix = ResourcePattern(SecuredType.TRANSACTIONAL_ID, "app-", PatternType.PREFIXED)
    controller.run(commands.CreateAcls((Acl(topic, READ), Acl(topic, CONFIGS), Acl(prefix, READ))))
    assert controller.json("/kafka-acl/Topic/orders") == {
        "version": 1,
        "acls": [
            {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"},
            {"principal": "User:b", "permissionType": "Deny", "operation": "DescribeConfigs", "host": "10.0.0.0/8"},
        ],
    }
    assert controller.store.get("/kafka-acl-extended/prefixed/TransactionalId/app-") is not None
    before = controller.machine.image
    assert before.acls == {topic: (READ, CONFIGS), prefix: (READ,)}
    assert controller.load().acls == before.acls
    controller.run(commands.DeleteAcls((AclFilter(principal="User:a"),)))
    assert controller.machine.image.acls == controller.load().acls == {topic: (CONFIGS,)}
    assert controller.store.get("/kafka-acl-extended/prefixed/TransactionalId/app-") is None
    controller.run(commands.CreateAcls((Acl(prefix, READ),)))
    assert controller.load().acls == {topic: (CONFIGS,), prefix: (READ,)}


@pytest.mark.parametrize("name", ["*", "a/b", "/", ".", "..", "%2F", "User:x", "ü\n\0", " ", "a//b/"])
@pytest.mark.parametrize("pattern_type", [PatternType.LITERAL, PatternType.PREFIXED])
def test_any_name(name: str, pattern_type: PatternType) -> None:
    controller = LoneController(MemoryStore())
    pattern = ResourcePattern(SecuredType.GROUP, name, pattern_type)
    controller.run(commands.CreateAcls((Acl(pattern, READ),)))
    assert controller.load().acls == {pattern: (READ,)}
    controller.run(commands.DeleteAcls((AclFilter(),)))
    assert controller.load().acls == {}
