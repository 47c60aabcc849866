"""Why nothing has come of it so far: the end of the sentence when somebody has waited for too long."""


def last_trouble(message: str) -> str:
    """To be put behind a sentence; nothing if nothing is known."""
    return f"; last trouble: {message}" if message else ""
