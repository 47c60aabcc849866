"""Where alarms are sent: a webhook with Alertmanager's JSON, mail, DingTalk, WeCom, Feishu.

Addresses come from the file of alarms only. Runs in a thread; a channel that fails is tried again twice.
"""

import base64
import hashlib
import hmac
import json
import smtplib
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote, urlsplit

from barnabas.console.alarms.alarms import Alarm
from barnabas.console.alarms.rules import ChannelSettings

TIMEOUT_SECONDS = 10.0
RETRY_SECONDS = (1.0, 5.0)
NEVER = "0001-01-01T00:00:00Z"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A message goes to the address in the file or nowhere."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class Channel:
    """One of the file. `last_error` is None after a message that arrived."""

    def __init__(self, settings: ChannelSettings, sleep: Callable[[float], None] = time.sleep) -> None:
        self.kind = settings.kind
        self.last_error: str | None = None
        self._values = settings.values
        self._sleep = sleep

    @property
    def place(self) -> str:
        """For the page: without what is secret in an address."""
        return str(self._values.get("host") or urlsplit(self._values["url"]).netloc.rpartition("@")[2])

    def send(self, alarms: Sequence[Alarm]) -> None:
        for wait in (*RETRY_SECONDS, None):
            try:
                self._send(alarms)
            except (OSError, smtplib.SMTPException, ValueError) as error:
                self.last_error = f"{type(error).__name__}: {error}"
                if wait is not None:
                    self._sleep(wait)
            else:
                self.last_error = None
                return

    def _send(self, alarms: Sequence[Alarm]) -> None:
        if self.kind == "mail":
            self._mail(alarms)
            return
        url, text = str(self._values["url"]), message_text(alarms)
        if self.kind == "webhook":
            body = alertmanager_json(alarms)
        elif self.kind == "feishu":
            body = {"msg_type": "text", "content": {"text": text}}
            if "secret" in self._values:
                stamp = str(int(time.time()))
                body |= {"timestamp": stamp, "sign": _signature(f"{stamp}\n{self._values['secret']}".encode(), b"")}
        else:
            body = {"msgtype": "text", "text": {"content": text}}
            if self.kind == "dingtalk" and "secret" in self._values:
                stamp, secret = str(int(time.time() * 1000)), str(self._values["secret"])
                sign = _signature(secret.encode(), f"{stamp}\n{secret}".encode())
                url += f"{'&' if '?' in url else '?'}timestamp={stamp}&sign={quote(sign, safe='')}"
        request = urllib.request.Request(
            url, json.dumps(body).encode(), {"content-type": "application/json"}, method="POST"
        )
        with _opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            _check_reply(self.kind, response.read(65_536))

    def _mail(self, alarms: Sequence[Alarm]) -> None:
        values: Mapping[str, Any] = self._values
        message = EmailMessage()
        message["From"], message["To"] = values["from"], ", ".join(values["to"])
        # A group id may hold line ends, a header may not.
        message["Subject"] = " ".join(message_text(alarms).splitlines()[0].split())[:200]
        message.set_content(message_text(alarms))
        tls = values.get("tls", "starttls")
        kind = smtplib.SMTP_SSL if tls == "tls" else smtplib.SMTP
        with kind(
            values["host"], int(values.get("port", 465 if tls == "tls" else 25)), timeout=TIMEOUT_SECONDS
        ) as smtp:
            if tls == "starttls":
                smtp.starttls()
            if "user" in values:
                smtp.login(values["user"], values.get("password", ""))
            smtp.send_message(message)


def message_text(alarms: Sequence[Alarm]) -> str:
    """One line per alarm, the first of which says how many there are."""
    firing = sum(1 for each in alarms if each.ended_at is None)
    lines = [f"Barnabas: {firing} firing, {len(alarms) - firing} resolved"]
    lines += [f"[{'firing' if each.ended_at is None else 'resolved'}] {each.text}" for each in alarms]
    return "\n".join(lines)


def alertmanager_json(alarms: Sequence[Alarm]) -> dict[str, Any]:
    """Version 4 of the webhook's format."""
    is_firing = any(each.ended_at is None for each in alarms)
    return {
        "version": "4",
        "groupKey": "barnabas",
        "truncatedAlerts": 0,
        "status": "firing" if is_firing else "resolved",
        "receiver": "barnabas",
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": [
            {
                "status": "firing" if each.ended_at is None else "resolved",
                "labels": {"alertname": each.rule.name, "kind": each.rule.kind, "subject": each.subject},
                "annotations": {"summary": each.text, "value": f"{each.value:g}"},
                "startsAt": _iso(each.since),
                "endsAt": NEVER if each.ended_at is None else _iso(each.ended_at),
                "generatorURL": "",
                "fingerprint": hashlib.sha256(f"{each.rule.name}\0{each.subject}".encode()).hexdigest()[:16],
            }
            for each in alarms
        ],
    }


def _check_reply(kind: str, body: bytes) -> None:
    """The chat services reply 200 to what they refuse, with a code in the body."""
    if kind == "webhook":
        return
    reply = json.loads(body or b"{}")
    code = reply.get("errcode", reply.get("code", 0)) if isinstance(reply, dict) else 0
    if code:
        raise ValueError(f"refused with code {code}: {str(reply.get('errmsg', reply.get('msg', '')))[:200]}")


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _signature(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.new(key, message, "sha256").digest()).decode()
