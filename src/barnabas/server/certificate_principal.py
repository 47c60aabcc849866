"""From a client's certificate to the name of its user: the subject as Java writes it, shortened by rules.

    ssl.principal.mapping.rules = RULE:pattern/replacement/[LU], ..., DEFAULT

The first rule whose pattern matches the whole subject decides; `$1` in the replacement is a group, L and U change the
case, DEFAULT leaves the subject as it is. Where no rule matches, nobody is authenticated.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

SHORT_NAMES: Mapping[str, str] = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The attributes that RFC 2253 has names for; Java writes all others by number."""
EMAIL_ADDRESS = "1.2.840.113549.1.9.1"
IA5_STRING = 0x16
RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
SPECIAL = re.compile(r'([,+"\\<>;])')


class PrincipalRule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None: DEFAULT."""
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        match = self.pattern.fullmatch(subject)
        if match is None:
            return None
        name = re.sub(r"\$(\d)", lambda each: match[int(each[1])] or "", self.replacement)
        return {"L": name.lower(), "U": name.upper()}.get(self.case, name)


def parse_rules(text: str) -> tuple[PrincipalRule, ...]:
    """Raises ValueError."""
    rules = []
    position = 0
    text = text.strip() or "DEFAULT"
    while position < len(text):
        match = RULE.match(text, position)
        if match is None:
            raise ValueError("must be DEFAULT, or rules of the form RULE:pattern/replacement/[LU]")
        if match[1]:
            rules.append(PrincipalRule(None))
        else:
            try:
                pattern = re.compile(match[2])
            except re.error as error:
                raise ValueError(f"has a pattern that is not a regular expression ({error})") from None
            if any(int(group) > pattern.groups for group in re.findall(r"\$(\d)", match[3])):
                raise ValueError("has a replacement with a group that its pattern lacks")
            rules.append(PrincipalRule(pattern, match[3], match[4]))
        position = match.end()
    return tuple(rules)


def name_of(certificate: Mapping[str, Any], rules: tuple[PrincipalRule, ...]) -> str | None:
    """The user's name, from what `SSLSocket.getpeercert` gives; None where no rule matches."""
    subject = subject_of(certificate)
    for rule in rules:
        name = rule.apply(subject)
        if name is not None:
            return name
    return None


def subject_of(certificate: Mapping[str, Any]) -> str:
    """The distinguished name in RFC 2253's form: the last part first, as Java's X500Principal.getName."""
    parts = certificate.get("subject", ())
    return ",".join("+".join(_attribute(name, value) for name, value in part) for part in reversed(parts))


def _attribute(name: str, value: str) -> str:
    if name == "emailAddress":
        encoded = value.encode("ascii", "replace")
        return f"{EMAIL_ADDRESS}=#{IA5_STRING:02x}{len(encoded):02x}{encoded.hex()}"
    return f"{SHORT_NAMES.get(name, name)}={_escaped(value)}"


def _escaped(value: str) -> str:
    text = SPECIAL.sub(r"\\\1", value)
    if text.startswith(("#", " ")):
        text = "\\" + text
    if text.endswith(" ") and len(text) > 1:
        text = text[:-1] + "\\ "
    return text
