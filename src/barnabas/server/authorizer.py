"""Who may do what: Kafka's StandardAuthorizer over the access rules of the cluster's image.

Super users may do everything. Otherwise any matching DENY wins, then any matching ALLOW; a resource that rules exist
for, none of which match, is denied, and so is one without rules unless `allow.everyone.if.no.acl.found`. Asked through
`RequestContext.may`, never directly by a handler. Decisions are made from the last image, so they go on while the
metadata engine is down. They are remembered until a rule changes; `version` tells caches elsewhere (a connection's)
when that was.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.clock import Clock
from barnabas.machines.controller.acls import WILDCARD, Acl, Operation, PatternType, SecuredType
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.server.acl_index import EVERYBODY, AclIndex, Client
from barnabas.server.audit_log import AuditLog, Decided, rule_text

MAX_REMEMBERED: Final = 20_000
ANY_NAME: Final = "hardcode"
"""Kafka asks about this name to find out whether somebody may do something to a resource that no rule names."""


class Ruling(NamedTuple):
    allowed: bool
    acl: Acl | None = None
    """The rule that decided, None for a super user or by default."""


ALLOWED_BY_DEFAULT: Final = Ruling(True)
DENIED_BY_DEFAULT: Final = Ruling(False)
_Key = tuple[str, str, Operation, SecuredType, str | None]


class Authorizer:
    def __init__(self, clock: Clock, *, super_users: Iterable[str] = (), allow_if_no_acl: bool = False) -> None:
        self.version = 0
        """Grows with every change of a rule."""
        self._super_users = frozenset(super_users)
        self._without_acls = ALLOWED_BY_DEFAULT if allow_if_no_acl else DENIED_BY_DEFAULT
        self._index = AclIndex()
        self._rulings: dict[_Key, Ruling] = {}
        self._clients: dict[tuple[str, str], Client] = {}
        self._audit = AuditLog(clock)

    def is_super_user(self, principal: str) -> bool:
        return principal in self._super_users

    @property
    def shows_grants(self) -> bool:
        return self._audit.shows_grants

    def on_image(self, image: ClusterImage) -> None:
        """All rules, from the start."""
        self._index = AclIndex()
        self._index.put(image.acls.items())
        self._forget()

    def on_delta(self, delta: Delta) -> None:
        if delta.acls_changed:
            self._index.put((pattern, delta.image.acls.get(pattern, ())) for pattern in delta.acls_changed)
            self._forget()

    def authorize(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: SecuredType,
        name: str,
        request: str,
        *,
        log_denied: bool = True,
    ) -> bool:
        ruling = self._ruling(principal, host, operation, resource_type, name)
        if self._audit.shows_grants if ruling.allowed else log_denied:
            decided = Decided(principal, host, operation, resource_type, name, request, ruling.allowed)
            self._audit.write(decided, rule_text(ruling.allowed, ruling.acl, principal in self._super_users))
        return ruling.allowed

    def would_allow(
        self, principal: str, host: str, operation: Operation, resource_type: SecuredType, name: str
    ) -> bool:
        """The decision alone: nothing is done, so nothing is written to the audit log."""
        return self._ruling(principal, host, operation, resource_type, name).allowed

    def _ruling(self, principal: str, host: str, operation: Operation, resource_type: SecuredType, name: str) -> Ruling:
        key = (principal, host, operation, resource_type, name)
        ruling = self._rulings.get(key)
        if ruling is None:
            ruling = self._remember(key, self._decide(self._client(principal, host), operation, resource_type, name))
        return ruling

    def authorize_any(self, principal: str, host: str, operation: Operation, resource_type: SecuredType) -> bool:
        """Whether there is any resource of the kind that this is allowed for (KIP-679)."""
        key = (principal, host, operation, resource_type, None)
        ruling = self._rulings.get(key)
        if ruling is None:
            client = self._client(principal, host)
            ruling = self._remember(key, Ruling(self._decide_any(client, operation, resource_type)))
        return ruling.allowed

    def _client(self, principal: str, host: str) -> Client:
        client = self._clients.get((principal, host))
        if client is None:
            if len(self._clients) >= MAX_REMEMBERED:
                self._clients.clear()
            client = self._clients[principal, host] = Client.of(principal, host)
        return client

    def _decide(self, client: Client, operation: Operation, resource_type: SecuredType, name: str) -> Ruling:
        if client.principal in self._super_users:
            return ALLOWED_BY_DEFAULT
        allowed: Acl | None = None
        has_rules = False
        for rules in self._index.rules_of(resource_type, name):
            has_rules = True
            for principal in (client.principal, EVERYBODY):
                for rule in rules.get(principal, ()):
                    if rule.covers(operation) and rule.is_from(client):
                        if rule.denies:
                            return Ruling(False, rule.acl)
                        allowed = rule.acl
        if allowed is not None:
            return Ruling(True, allowed)
        return DENIED_BY_DEFAULT if has_rules else self._without_acls

    def _decide_any(self, client: Client, operation: Operation, resource_type: SecuredType) -> bool:
        """An ALLOW counts unless a DENY of the same name, of a prefix of it, or of everything covers it."""
        if self._decide(client, operation, resource_type, ANY_NAME).allowed:
            return True
        denied_names: set[str] = set()
        denied_prefixes: set[str] = set()
        allowed: list[Acl] = []
        for rule in self._index.all_for(resource_type, client, operation):
            name, is_literal = rule.acl.pattern.name, rule.acl.pattern.pattern_type is PatternType.LITERAL
            if not rule.denies:
                allowed.append(rule.acl)
            elif is_literal and name == WILDCARD:
                return False
            else:
                (denied_names if is_literal else denied_prefixes).add(name)
        lengths = sorted({len(prefix) for prefix in denied_prefixes})
        for acl in allowed:
            name, is_literal = acl.pattern.name, acl.pattern.pattern_type is PatternType.LITERAL
            if is_literal and name == WILDCARD:
                return True
            covered = any(name[:length] in denied_prefixes for length in lengths if length <= len(name))
            if not covered and not (is_literal and name in denied_names):
                return True
        return False

    def _remember(self, key: _Key, ruling: Ruling) -> Ruling:
        if len(self._rulings) >= MAX_REMEMBERED:
            self._rulings.clear()
        self._rulings[key] = ruling
        return ruling

    def _forget(self) -> None:
        self._rulings.clear()
        self.version += 1
