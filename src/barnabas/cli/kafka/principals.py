"""Principals as Kafka's tools take them."""


def check_principal(text: str) -> None:
    """Raises ValueError."""
    if ":" not in text:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
