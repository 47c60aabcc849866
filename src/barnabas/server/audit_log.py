"""One line per denial, and per grant where somebody wants them: the logger `kafka.authorizer.logger`, as in Kafka.

Denials are INFO, grants DEBUG. The same decision is written again after ten seconds at the earliest, with how often it
was made meanwhile: a client that tries again and again must not fill the disk. Many different denials (somebody who
tries names) are limited too; what was left out is counted.
"""

import logging
from typing import Final, NamedTuple

from barnabas.clock import Clock
from barnabas.machines.controller.acls import Acl, Operation, SecuredType

logger = logging.getLogger("kafka.authorizer.logger")

INTERVAL_MS: Final = 10_000
MAX_LINES: Final = 1000
"""Different lines per interval."""
LONGEST_NAME: Final = 300


class Decided(NamedTuple):
    principal: str
    host: str
    operation: Operation
    type: SecuredType
    name: str
    request: str
    allowed: bool


def rule_text(allowed: bool, acl: Acl | None, is_super_user: bool) -> str:
    if is_super_user:
        return "SuperUser"
    if acl is None:
        return "DefaultAllow" if allowed else "DefaultDeny"
    (resource_type, name, pattern_type), (principal, host, operation, permission) = acl
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={resource_type.name}, resourceName={_shown(name)},"
        f" patternType={pattern_type.name}, principal={_shown(principal)}, host={host},"
        f" operation={operation.name}, permissionType={permission.name}))"
    )


class AuditLog:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[Decided, int] = {}
        self._since_ms: int | None = None
        self._left_out = 0

    @property
    def shows_grants(self) -> bool:
        return logger.isEnabledFor(logging.DEBUG)

    def write(self, decided: Decided, rule: str) -> None:
        level = logging.DEBUG if decided.allowed else logging.INFO
        if not logger.isEnabledFor(level):
            return
        now_ms = self._clock.monotonic_ms()
        if self._since_ms is None or now_ms - self._since_ms >= INTERVAL_MS:
            self._end_interval(now_ms)
        count = self._seen.get(decided)
        if count is not None:
            self._seen[decided] = count + 1
        elif len(self._seen) < MAX_LINES:
            self._seen[decided] = 0
            logger.log(level, "%s based on rule %s", _line(decided), rule)
        else:
            self._left_out += 1

    def _end_interval(self, now_ms: int) -> None:
        for decided, count in self._seen.items():
            if count:
                level = logging.DEBUG if decided.allowed else logging.INFO
                logger.log(level, "%s, %d times more", _line(decided), count)
        if self._left_out:
            logger.info("%d further decisions were not written", self._left_out)
        self._seen, self._left_out, self._since_ms = {}, 0, now_ms


def _line(decided: Decided) -> str:
    kind = "".join(word.capitalize() for word in decided.type.name.split("_"))
    return (
        f"Principal = {_shown(decided.principal)} is {'Allowed' if decided.allowed else 'Denied'}"
        f" operation = {decided.operation.name} from host = {decided.host}"
        f" on resource = {kind}:LITERAL:{_shown(decided.name)} for request = {decided.request}"
    )


def _shown(name: str) -> str:
    """Names come from the wire: no line breaks, no endless lines."""
    text = name if name.isprintable() else name.encode("unicode_escape").decode()
    return text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "..."
