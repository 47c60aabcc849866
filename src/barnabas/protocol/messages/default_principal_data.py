"""Who sent a request, as Envelope carries it: v0, flexible, behind an int16 version (`versioned.py`)."""

from barnabas.protocol.schema import BOOL, STRING, field, message


@message(versions=(0, 0), flexible=0)
class DefaultPrincipalData:
    type: str = field(STRING)
    name: str = field(STRING)
    token_authenticated: bool = field(BOOL)
