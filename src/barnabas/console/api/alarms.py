"""Alarms: what is firing, what was, the rules; silence."""

import time
from typing import Any

from starlette.requests import Request

from barnabas.console.alarms.alarms import Alarm
from barnabas.console.alarms.rules import KINDS
from barnabas.console.api.topics import text_of
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery

SHOWN_EVENTS = 200
SUBJECTS = {
    **dict.fromkeys(("lag", "time-lag", "lag-not-falling", "consumer-gone"), "group"),
    **dict.fromkeys(("no-traffic", "out-of-sync", "offline"), "topic"),
}
"""What the subjects of a kind of alarm are; the others are about brokers and the cluster."""
LONGEST_SILENCE_MINUTES = 30 * 24 * 60


def firing(console: Console) -> list[Alarm]:
    """Those about what may be seen."""
    return [each for each in console.alarms.firing if console.may_see(SUBJECTS.get(each.rule.kind, ""), each.subject)]


async def get_alarms(console: Console, request: Request) -> Any:
    now, alarms = time.time(), console.alarms
    # Of a rule that is not there any more it is not known what it was about.
    subjects = {each.name: SUBJECTS.get(each.kind, "") for each in alarms.rules}
    return {
        "firing": [
            {
                "rule": each.rule.name,
                "kind": each.rule.kind,
                "subject": each.subject,
                "value": each.value,
                "limit": each.rule.above,
                "meaning": KINDS[each.rule.kind],
                "since": each.since,
                "isSilenced": alarms.is_silenced(each.rule.name, each.subject, now),
            }
            for each in firing(console)
        ],
        "events": [
            {"at": each.at, "rule": each.rule, "subject": each.subject, "event": each.event, "text": each.text}
            for each in list(alarms.events)[-SHOWN_EVENTS:][::-1]
            if console.may_see(subjects.get(each.rule, "topic"), each.subject)
        ],
        "rules": [
            {
                "name": each.name,
                "kind": each.kind,
                "match": each.match,
                "above": each.above,
                "clear": each.clear_at,
                "for": each.for_seconds,
                "meaning": KINDS[each.kind],
            }
            for each in alarms.rules
        ],
        "silences": [
            {"rule": each.rule, "subject": each.subject, "until": each.until}
            for each in alarms.silences(now)
            if console.may_see(subjects.get(each.rule, "topic"), each.subject)
        ],
        "channels": [
            {"kind": each.kind, "place": each.place, "lastError": each.last_error} for each in console.notifier.channels
        ],
    }


async def silence(console: Console, request: Request) -> Any:
    """{"rule", "subject", "minutes"}; 0 minutes end it."""
    body = await request.json()
    rule, subject = text_of(body, "rule"), text_of(body, "subject")
    minutes = body.get("minutes")
    if not isinstance(minutes, int) or not 0 <= minutes <= LONGEST_SILENCE_MINUTES:
        raise BadQuery(f"minutes is a number from 0 to {LONGEST_SILENCE_MINUTES}")
    if rule not in {each.name for each in console.alarms.rules}:
        raise LookupError(f"there is no alarm {rule}")
    await console.check_cluster_right()
    console.alarms.silence(rule, subject, time.time() + minutes * 60)
    console.audit("silence", f"{rule}: {subject} for {minutes} min")
    return {"ok": True}


ROUTES = (("GET", "/alarms", get_alarms), ("POST", "/alarms/silence", silence))
